-- Renews, resizes or gives up one node's share of a concurrency limit.
--
-- KEYS[1]: a hash; a field is a node's incarnation, its value "share:expiry:want:seq".
-- ARGV: incarnation, seq, in use, held, want, limit, ttl (us).
--   held: what the node may be using until it hears the answer (in use <= held, or it has lost some)
--   want: what it would use; a node that uses, holds and wants nothing says goodbye
-- Answer: share, target, shares of others, wants of others, nodes, now (us).
--   A share never becomes less than what is held of it: the node is asked to shrink to the target,
--   and does so in its next call. So an answer that is lost strands nothing that is in use.
--   A call that a later one of the same node has overtaken changes nothing: its share is -1.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local key, node = KEYS[1], ARGV[1]
local seq, in_use, held = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local want, limit, ttl = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

local function entry(share, expiry, wanted, number)
  return string.format('%.0f:%.0f:%.0f:%.0f', share, expiry, wanted, number)
end

local before, known = 0, nil
local others, wanted, nodes = 0, 0, 1
local fields = redis.call('HGETALL', key)
for i = 1, #fields, 2 do
  local a, b, c, d = string.match(fields[i + 1], '^(%d+):(%d+):(%d+):(%d+)$')
  local share, expiry, wants, number = tonumber(a), tonumber(b), tonumber(c), tonumber(d)
  if fields[i] == node then
    known = number
    if expiry > now then before = share end
  elseif expiry <= now then
    redis.call('HDEL', key, fields[i])
  else
    others, wanted, nodes = others + share, wanted + wants, nodes + 1
    -- Only where the clock has stepped back: a node that is gone must not stay longer for it.
    if expiry > now + ttl then
      redis.call('HSET', key, fields[i], entry(share, now + ttl, wants, number))
    end
  end
end
if known and seq < known then
  return { -1, 0, others, wanted, nodes, now }
end

local free = math.max(0, limit - others)
-- In proportion to what is wanted, rounded up: who comes last gets less. Or all that nobody lacks,
-- but for an eighth of others' part, with which they begin when they come.
local fair = math.ceil(limit * want / math.max(1, want + wanted))
local lacking = math.max(0, wanted - others)
local spare = free - math.max(lacking, math.floor((limit - fair) / 8))
local target = math.min(want, math.max(in_use, fair, spare))
local keep = math.min(held, before)
local share = math.max(keep, math.min(free, target))

if share == 0 and want == 0 then
  redis.call('HDEL', key, node)
else
  redis.call('HSET', key, node, entry(share, now + ttl, want, seq))
end
redis.call('PEXPIRE', key, string.format('%.0f', math.floor(ttl / 1000) + 1000))
return { share, math.min(share, target), others, wanted, nodes, now }
