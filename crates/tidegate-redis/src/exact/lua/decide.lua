local what, groups = ARGV[1], tonumber(ARGV[2])
if what == 'forget' then
  redis.call('DEL', unpack(KEYS))
  return {}
end
local states, at = {}, 3
for i = 1, #KEYS do
  local s = {
    key = KEYS[i], does = kind_of(ARGV[at]), numbers_of = table.concat(ARGV, ':', at, at + 3) .. ':',
    a = tonumber(ARGV[at + 1]), b = tonumber(ARGV[at + 2]), tick = tonumber(ARGV[at + 3]),
    most = tonumber(ARGV[at + 4]), first = tonumber(ARGV[at + 5]), y = tonumber(ARGV[at + 6]),
  }
  s.now = floor(us / s.tick)
  s.does.load(s)
  states[i], at = s, at + 7
end

local answer = {}
if what == 'back' then
  for i = 1, #KEYS do
    local s, permits, mark = states[i], tonumber(ARGV[at]), tonumber(ARGV[at + 1])
    if s.does.back(s, permits, mark) then s.does.save(s) end
    at = at + 2
  end
  return answer
end
for i = 1, #KEYS do answer[i] = states[i].does.mark(states[i]) end

for _ = 1, groups do
  local n, cost = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local patience, forced = tonumber(ARGV[at + 2]), ARGV[at + 3] == '1'
  at = at + 4
  local granted, delays = n, {}
  for i = 1, #KEYS do
    local s = states[i]
    local kind = s.does
    if cost == 0 then
      delays[i] = 0
    elseif forced then
      if not kind.forced(s, cost) then granted = 0 end
    elseif n == 1 then
      local retry, delay = kind.ask(s, cost, floor(patience / s.tick))
      if retry ~= 0 then granted = 0 end
      delays[i] = delay
    else
      granted = min(granted, floor(kind.free(s) / cost))
    end
  end
  answer[#answer + 1] = granted
  for i = 1, #KEYS do
    local s, retry = states[i], 0
    local kind = s.does
    if granted > 0 and cost > 0 then
      kind.take(s, granted * cost)
      s.is_taken = true
    end
    if granted < n and cost > 0 then
      if not forced then
        retry = kind.ask(s, cost, floor(patience / s.tick))
      elseif not kind.forced(s, cost) then
        retry = nil
      end
      if retry and retry > 0 then s.is_told = true end
    end
    answer[#answer + 1] = kind.free(s)
    answer[#answer + 1] = retry and times(retry, s.tick) or -1
    answer[#answer + 1] = times(kind.reset(s), s.tick)
    answer[#answer + 1] = granted > 0 and times(delays[i] or 0, s.tick) or 0
  end
end
if what == 'check' then
  for i = 1, #KEYS do
    local s = states[i]
    -- A denial writes nothing, but where time begins with it: a clock that stepped back, a new
    -- key that is not full.
    if s.is_taken or s.stepped or (s.is_new and s.is_told and s.first > 0) then
      s.does.save(s)
    end
  end
end
return answer
