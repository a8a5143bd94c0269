-- One string: whose numbers it is in (kind, a, b, tick), and the numbers.
function load_text(s)
  local kind, stored = s.does, redis.call('GET', s.key)
  if not stored then
    s.is_new = true
    return kind.fresh(s)
  end
  local n = split(stored)
  if string.sub(stored, 1, #s.numbers_of) == s.numbers_of then
    return kind.roll(s, tonumber(n[5]), tonumber(n[6]), tonumber(n[7]))
  end
  -- Of other numbers: what was used by them stays used, and these hold at once.
  local old = { a = tonumber(n[2]), b = tonumber(n[3]), tick = tonumber(n[4]), most = 0, y = 0 }
  old.now = floor(us / old.tick)
  local then_did = kind_of(n[1])
  then_did.roll(old, tonumber(n[5]), tonumber(n[6]), tonumber(n[7]))
  kind.assume(s, then_did.used(old))
end
function save_text(s)
  local reset = s.does.reset(s)
  if reset == 0 and s.first == 0 then
    redis.call('DEL', s.key)
    return
  end
  local numbers = s.does.numbers(s)
  for at = 1, #numbers do numbers[at] = text(numbers[at]) end
  local ms = ceil(times(reset, s.tick) / 1000) + GRACE_MS
  if s.first > 0 then ms = ms + KEPT_MS end
  redis.call('SET', s.key, s.numbers_of .. table.concat(numbers, ':'), 'PX', text(ms))
end
