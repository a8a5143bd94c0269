-- One string: whose numbers it is in (kind, a, b, tick), and the numbers.
local function load_string(s)
  local kind, stored = kinds[s.kind], redis.call('GET', s.key)
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
  kinds[n[1]].roll(old, tonumber(n[5]), tonumber(n[6]), tonumber(n[7]))
  kind.assume(s, kinds[n[1]].used(old))
end
local function save_string(s)
  local reset = kinds[s.kind].reset(s)
  if reset == 0 and s.first == 0 then
    redis.call('DEL', s.key)
    return
  end
  local numbers = kinds[s.kind].numbers(s)
  for at = 1, #numbers do numbers[at] = text(numbers[at]) end
  local ms = ceil(reset * s.tick / 1000) + GRACE_MS
  if s.first > 0 then ms = ms + KEPT_MS end
  redis.call('SET', s.key, s.numbers_of .. table.concat(numbers, ':'), 'PX', text(ms))
end
for _, kind in pairs(kinds) do kind.load, kind.save = load_string, save_string end
