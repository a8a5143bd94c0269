-- Which nodes there are. KEYS[1]: a sorted set of node ids by the time (us) until when each counts.
-- ARGV: id, how long it counts from now (us); 0 says goodbye. Reply: how many nodes there are.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local id, lasts = ARGV[1], tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if lasts > 0 then
  redis.call('ZADD', KEYS[1], string.format('%.0f', now + lasts), id)
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(lasts / 1000) + 1000))
else
  redis.call('ZREM', KEYS[1], id)
end
return { redis.call('ZCARD', KEYS[1]) }
