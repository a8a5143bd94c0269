-- A token bucket whose permits nodes take ahead of use, in one step.
--
-- KEYS[1]: a hash. Field `b`: level:last:gap0:gap1:swept, and sums over all nodes:
--   members:live:demand:share:hold:out:silent
-- One field per node:
--   hold:exp:demand:share:seen:heard:out:seq:ack:told:past:since
--     hold, exp   permits it has not spent, at most; and when they end
--     share       what part of the rate it may mint of its own while it does not reach us (ppm)
--     seen        its last call here;  heard: the last one whose answer it is known to have got
--     out         what was kept back for it and may be minted by now, or may still be
--     seq, ack    its last call, and the last answer it knew then;  told: minted since, as told
--     past        what was kept back and is out no more: unused, or minted before a call that was
--                 answered late could tell of it
--     since       from then on its share has been kept back and is not in `out` yet; 0: it is not
-- ARGV: 1 node ('-': spend at once)  2 seq  3 ack  4 demand (permits/s)  5 held  6 returned
--   7 want  8 minted since ack  9 share it counts on  10 leaves (1)  11 unit (of `-`)
--   12 num 13 den (permits per tick)  14 full = burst*den  15 tick (us)
--   16 T 17 E 18 G 19 M 20 grace (ticks)  21 strict | optimistic
-- Answer: granted (-1: a later call was here before), held that still counts, share, nodes,
--   remaining, the call before this one, us until there is one unit more
--
-- Held at all times:   level + all holds + all that is out <= full,   all shares <= 10^6.
-- level and out are in 1/den permits. All numbers are whole and below 2^52: doubles hold them, and
-- quotients round as they should.
--
-- A call touches `b` and its own field, however many nodes there are. What time does to the others
-- is seen to by the first call that comes T/2 after the last one that did so: it sweeps over all.
-- Until then the sums are on the safe side: a lease that has ended keeps its room, a member that
-- is forgotten its share, and who could fall silent before the next sweep counts as silent from
-- this one on (nobody who calls in time could). What was kept back too early comes back like all
-- that was not minted.
local time = redis.call('TIME')
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local MILLION, REMEMBERED = 1000000, 10
local a = {}
for i = 2, 20 do a[i] = tonumber(ARGV[i]) end
local id, seq, ack, demand, held, ret = ARGV[1], a[2], a[3], a[4], a[5], a[6]
local want, minted, echo, leaves, unit = a[7], a[8], a[9], a[10] == 1, a[11]
local num, den, full, tick = a[12], a[13], a[14], a[15]
local T, E, G, M, grace = a[16], a[17], a[18], a[19], a[20]
local sweep = floor(T / 2)
local strict = ARGV[21] == 'strict'
local now = floor((tonumber(time[1]) * MILLION + tonumber(time[2])) / tick)

-- x * ppm / 10^6, rounded up, by parts: the product as a whole could be above 2^53.
local function part(x, ppm)
  return floor(x / MILLION) * ppm + ceil(x % MILLION * ppm / MILLION)
end

-- Each field is twelve numbers.
local TWELVE = string.rep('%.0f:', 12):sub(1, -2)
local function numbers(text)
  local v = {}
  for x in string.gmatch(text, '[^:]+') do v[#v + 1] = tonumber(x) end
  return v
end
local function read(text)
  local v = numbers(text)
  return { hold = v[1], exp = v[2], demand = v[3], share = v[4], seen = v[5], heard = v[6],
    out = v[7], seq = v[8], ack = v[9], told = v[10], past = v[11], since = v[12] }
end
local function written(n)
  return string.format(TWELVE, n.hold, n.exp, n.demand, n.share, n.seen, n.heard, n.out, n.seq,
    n.ack, n.told, n.past, n.since)
end

local raw = redis.call('HMGET', KEYS[1], 'b', id)
local me = raw[2] and read(raw[2])
if me and seq <= me.seq then return { -1, 0, 0, 0, 0, me.seq, 0 } end
local level, last, gap0, gap1, swept = full, now, 0, 0, now
local members, live, demands, shares, holds, outs, silent = 0, 0, 0, 0, 0, 0, 0
if raw[1] then
  local b = numbers(raw[1])
  level, last, gap0, gap1, swept = b[1], b[2], b[3], b[4], b[5]
  members, live, demands, shares = b[6], b[7], b[8], b[9]
  holds, outs, silent = b[10], b[11], b[12]
end

-- Adds a node to the sums (1), or takes it out of them (-1).
local function count(n, sign)
  members, demands = members + sign, demands + sign * n.demand
  shares, holds = shares + sign * n.share, holds + sign * n.hold
  if n.demand > 0 then live = live + sign end
  -- It saves up so much at most, and no more than was kept back.
  local most = part(num * T, n.share)
  if n.since > 0 then silent = silent + sign * n.share else most = min(n.out, most) end
  outs = outs + sign * most
end

-- For how much of a time it may be minting.
local function silence(n, from, to)
  to = min(to, n.seen + M)
  if not strict then
    -- Only who fell silent together with everybody: then it is the store that was away.
    to = n.seen <= gap0 and min(to, gap1 + grace) or from
  end
  return n.share > 0 and max(0, to - max(from, n.heard + G)) or 0
end

-- Brings it up to now. Its share has been kept back for w ticks since the last call; that was
-- rounded up, so what is out is rounded down.
local function catch_up(n, w)
  if n.since > 0 then w, n.since, n.changed = w + last - n.since, 0, true end
  if w > 0 then n.out, n.changed = n.out - part(-num * w, n.share), true end
  -- A lease that ended since the last call kept its room until now: it could be spent meanwhile.
  if n.exp <= last and n.hold > 0 then n.hold, n.changed = 0, true end
  if now >= n.seen + M and (n.share > 0 or n.demand > 0) then
    n.share, n.demand, n.changed = 0, 0, true
  end
end

-- The clock was set back: as if no time had passed, so all that was noted moves with it.
local back = max(0, last - now)
last, gap0, gap1 = last - back, gap0 - back, gap1 - back
local passed = now - last
local withheld = part(num * passed, silent)
local sweeps = members > 0 and (now >= swept + sweep or back > 0)
if sweeps then
  if passed > G then gap0, gap1 = last, now end
  swept, withheld = now, 0
  members, live, demands, shares, holds, outs, silent = 0, 0, 0, 0, 0, 0, 0
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local name = all[i]
    local n = name == id and me or name ~= 'b' and read(all[i + 1])
    if n then
      if back > 0 then
        n.exp, n.seen, n.heard, n.changed = n.exp - back, n.seen - back, n.heard - back, true
        n.since = max(0, n.since - back)
      end
      local w = silence(n, last, now)
      withheld = withheld + part(num * w, n.share)
      catch_up(n, w)
      if n == me then
        count(n, 1)
      elseif now >= n.seen + REMEMBERED * M then
        redis.call('HDEL', KEYS[1], name)
      else
        if silence(n, now, now + sweep) > 0 then n.since, n.changed = now, true end
        count(n, 1)
        if n.changed then redis.call('HSET', KEYS[1], name, written(n)) end
      end
    end
  end
end
-- Refill. Longer than all may mint and it takes to fill up makes no difference.
local refill = min(passed * num, M * num + 2 * full)
level = min(level + refill - withheld, full - holds * den - outs)

local answer
if id == '-' then
  level = min(level + ret * den, full - holds * den - outs)
  local there = max(0, floor(level / den))
  local g = floor(min(want, there) / unit) * unit
  level = level - g * den
  local wait = g < want and max(1, ceil((unit * den - level) / num)) * tick or 0
  answer = { g, 0, 0, live, there - g, 0, wait }
  -- Nothing taken, nothing to write, nothing to replicate.
  if g == 0 and ret == 0 and back == 0 and not sweeps then return answer end
else
  if me then
    count(me, -1)
    catch_up(me, me.since > 0 and passed or 0)
  else
    me = { hold = 0, exp = 0, demand = 0, share = 0, seen = now - T, heard = now - T, out = 0,
      seq = 0, ack = 0, told = 0, past = 0, since = 0 }
  end
  local before = me.seq

  -- What it minted, and what of its right it can no longer use. It mints on until it has our
  -- answer, so that is known only when it tells that it had the one before.
  local left = me.out - max(0, minted - (ack == me.ack and me.told or 0)) * den
  if left < 0 then
    -- More than it could have minted since: so it did before, of what was kept back for that.
    local known = min(-left, me.past)
    me.past, level, left = me.past - known, max(level + left + known, -full), 0
  end
  local beyond = left
  left = min(left, part(num * T, me.share))
  beyond = beyond - left
  local keep = left
  if leaves then keep = 0
  elseif ack == me.seq then
    local w = max(0, min(now, me.seen + M) - me.seen - G)
    local right = part(num * w, me.share)
    keep = min(left, right)
    me.heard, me.past, beyond = me.seen, 0, min(beyond, right - keep)
  end
  me.past = min(num * M, me.past + beyond)
  level, me.out = level + left - keep, keep

  -- What it has, as far as we still know of it.
  local kept = min(held, me.hold)
  level = level + min(ret, me.hold - kept) * den
  me.demand = leaves and 0 or demand

  -- Its share goes down only when it says that it counts on less: the answer may get lost.
  local weight, share = 0, 0
  if me.demand > 0 then
    weight = floor(me.demand * MILLION / (demands + me.demand))
    share = max(0, min(floor((weight + floor(MILLION / (live + 1))) / 2), MILLION - shares))
  end
  me.share = max(share, min(echo, me.share))

  -- A slice by demand, and all beyond what the others ask for until they come again. What is lent
  -- leaves room for what all may mint, or there would be nothing to keep that back from.
  local there = max(0, floor(level / den))
  local since = min(now - me.seen, 2 * T)
  local slice = part(there, min(MILLION, floor(2 * weight * since / T)))
  local surplus = there - ceil(part(num * T, MILLION - weight) / den)
  local room = floor((full - num * T) / den) - holds - kept
  local g = max(0, min(want, room, max(slice, surplus)))
  level = level - g * den
  me.hold, me.exp, me.seen, me.seq, me.ack, me.told = kept + g, now + E, now, seq, ack, minted

  if leaves then
    me = nil
    redis.call('HDEL', KEYS[1], id)
  else
    if silence(me, now, swept + sweep) > 0 then me.since = now end
    count(me, 1)
    level = min(level, full - holds * den - outs)
  end
  answer = { g, kept, share, live, there - g, before, 0 }
end

local b = string.format(TWELVE, level, now, gap0, gap1, swept, members, live, demands, shares,
  holds, outs, silent)
if me then
  redis.call('HSET', KEYS[1], 'b', b, id, written(me))
else
  redis.call('HSET', KEYS[1], 'b', b)
end
-- Forgotten once it would be full again, even if others mint first.
local rest = ceil((full - level) / num) + (members > 0 and REMEMBERED * M or 0)
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', floor(rest * tick / 1000) + 1000))
return answer
