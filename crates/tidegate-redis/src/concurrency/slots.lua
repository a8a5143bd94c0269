-- Frees places of a concurrency limit, and takes or renews others.
--
-- KEYS[1]: a sorted set; a member is one place in use, "incarnation:ticket:number"; its score is
--   twice its expiry (us), and one more where somebody has asked its holder to leave.
-- ARGV: limit, ttl (us), incarnation, how many tickets leave, and each with its places; then each
--   ticket that stays or comes, with its places.
-- Answer: places in use, now (us), then for each that stays or comes whether it has its places.
--   To take and to renew is one thing: who has all of its places keeps them for a ttl more, and
--   who lacks some gets them if they are free. So a call may be made twice; and a renewal after
--   a loss of data takes the places again, or says that they are lost.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local key, limit, ttl, node = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]

local function text(number)
  return string.format('%.0f', number)
end
local function place(ticket, number)
  return node .. ':' .. ticket .. ':' .. number
end

local at = 5
for _ = 1, tonumber(ARGV[4]) do
  for number = 1, tonumber(ARGV[at + 1]) do
    redis.call('ZREM', key, place(ARGV[at], number))
  end
  at = at + 2
end

redis.call('ZREMRANGEBYSCORE', key, '-inf', text(2 * now + 1))
-- Only where the clock has stepped back: a place whose holder is gone must not stay longer for it.
local latest = 2 * (now + ttl)
for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. text(latest + 1), '+inf')) do
  local leaving = tonumber(redis.call('ZSCORE', key, member)) % 2
  redis.call('ZADD', key, 'XX', text(latest + leaving), member)
end

local inside = redis.call('ZCARD', key)
local answer = { 0, now }
while ARGV[at] do
  local ticket, places = ARGV[at], tonumber(ARGV[at + 1])
  local missing, leaving = 0, false
  for number = 1, places do
    local score = redis.call('ZSCORE', key, place(ticket, number))
    if not score then
      missing = missing + 1
    elseif tonumber(score) % 2 == 1 then
      leaving = true
    end
  end
  local has = 0
  if not leaving and (missing == 0 or inside + missing <= limit) then
    for number = 1, places do
      redis.call('ZADD', key, text(latest), place(ticket, number))
    end
    inside, has = inside + missing, 1
  end
  answer[#answer + 1] = has
  at = at + 2
end

answer[1] = inside
if inside > 0 then
  redis.call('PEXPIRE', key, text(math.floor(ttl / 1000) + 1000))
end
return answer
