-- Asks a holder to leave: KEYS[1] as in slots.lua. ARGV: incarnation, ticket.
-- Answer: how many of its places are marked, now (us). The holder learns of it with its next
--   renewal, which fails; until it frees its places, or they expire, they stay taken.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local marked = 0
while true do
  local member = ARGV[1] .. ':' .. ARGV[2] .. ':' .. (marked + 1)
  local score = redis.call('ZSCORE', KEYS[1], member)
  if not score then
    return { marked, now }
  end
  if tonumber(score) % 2 == 0 then
    redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', tonumber(score) + 1), member)
  end
  marked = marked + 1
end
