-- Counts who is inside in two windows of time: who leaves, who moves on to the window of now, and
-- who comes, in one step.
--
-- KEYS[1]: a hash; a field is the number of a window, its value how many places are counted there.
-- ARGV: limit, width of a window (us), how many (window, places) leave, and these; how many
--   (window, places) move on, and these; then the places of each that comes.
-- Answer: window of now, now (us), places counted there, places counted in the one before, then
--   for each that comes whether it got in.
--   Windows are named by Redis's clock alone. Who leaves or moves names the window in which it is
--   counted: no count goes below 0, and where the window is over there is nothing to take away.
--   Who moves is counted in the new window whatever was found in the old: to move twice, or after
--   a loss of data, counts too many for two windows, never too few.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local key, limit, width = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])

local counts = {}
local window = math.floor(now / width)
local fields = redis.call('HGETALL', key)
for i = 1, #fields, 2 do
  local number = tonumber(fields[i])
  counts[number] = tonumber(fields[i + 1])
  -- Where the clock has stepped back: no window comes twice.
  window = math.max(window, number)
end
local current, previous = counts[window] or 0, counts[window - 1] or 0
local changed = false

local at = 4
for _ = 1, tonumber(ARGV[3]) do
  local counted, places = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  if counted == window then
    current = math.max(0, current - places)
  elseif counted == window - 1 then
    previous = math.max(0, previous - places)
  end
  changed = true
  at = at + 2
end

local moves = tonumber(ARGV[at])
at = at + 1
for _ = 1, moves do
  local counted, places = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  if counted == window then
    -- They are all counted here already, unless data was lost.
    current = math.max(current, places)
  else
    if counted == window - 1 then
      previous = math.max(0, previous - places)
    end
    current = current + places
  end
  changed = true
  at = at + 2
end

local answer = { window, now, 0, 0 }
while ARGV[at] do
  local places, got = tonumber(ARGV[at]), 0
  if current + previous + places <= limit then
    current, got, changed = current + places, 1, true
  end
  answer[#answer + 1] = got
  at = at + 1
end

if changed then
  for i = 1, #fields, 2 do
    if tonumber(fields[i]) < window - 1 then
      redis.call('HDEL', key, fields[i])
    end
  end
  local function keep(number, count)
    local field = string.format('%.0f', number)
    if count > 0 then
      redis.call('HSET', key, field, string.format('%.0f', count))
    else
      redis.call('HDEL', key, field)
    end
  end
  keep(window, current)
  keep(window - 1, previous)
  redis.call('PEXPIRE', key, string.format('%.0f', math.ceil(3 * width / 1000)))
end
answer[3], answer[4] = current, previous
return answer
