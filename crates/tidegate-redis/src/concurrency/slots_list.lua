-- Who holds places: KEYS[1] as in slots.lua. ARGV: how many places to skip, how many to tell.
-- Answer: now (us), then for each place: incarnation (upper, lower half), ticket, number,
--   expiry (us), whether it was asked to leave. Changes nothing.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local first, count = tonumber(ARGV[1]), tonumber(ARGV[2])
local found = redis.call('ZRANGE', KEYS[1], first, first + count - 1, 'WITHSCORES')
local answer = { now }
for i = 1, #found, 2 do
  local upper, lower, ticket, number = string.match(found[i], '^(%d+):(%d+):(%d+):(%d+)$')
  local score = tonumber(found[i + 1])
  for _, part in ipairs({ upper, lower, ticket, number }) do
    answer[#answer + 1] = tonumber(part)
  end
  answer[#answer + 1] = math.floor(score / 2)
  answer[#answer + 1] = score % 2
end
return answer
