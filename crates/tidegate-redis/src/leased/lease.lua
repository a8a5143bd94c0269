-- A token bucket whose permits nodes take ahead of use, in one step.
--
-- KEYS[1]: a hash. Field `b`: level:last:gap0:gap1. One field per node:
--   hold:exp:demand:share:seen:heard:out:seq:ack:told:past
--     hold, exp   permits it has not spent, at most; and when they end
--     share       what part of the rate it may mint of its own while it does not reach us (ppm)
--     seen        its last call here;  heard: the last one whose answer it is known to have got
--     out         what was kept back for it and may be minted by now, or may still be
--     seq, ack    its last call, and the last answer it knew then;  told: minted since, as told
--     past        what was kept back and is out no more: unused, or minted before a call that was
--                 answered late could tell of it
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
local time = redis.call('TIME')
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local MILLION, REMEMBERED = 1000000, 10
local a = {}
for i = 2, 20 do a[i] = tonumber(ARGV[i]) end
local id, seq, ack, demand, held, ret = ARGV[1], a[2], a[3], a[4], a[5], a[6]
local want, minted, echo, leaves, unit = a[7], a[8], a[9], a[10] == 1, a[11]
local num, den, full, tick = a[12], a[13], a[14], a[15]
local T, E, G, M, grace = a[16], a[17], a[18], a[19], a[20]
local strict = ARGV[21] == 'strict'
local now = floor((tonumber(time[1]) * MILLION + tonumber(time[2])) / tick)

-- x * ppm / 10^6, rounded up, by parts: the product as a whole could be above 2^53.
local function part(x, ppm)
  return floor(x / MILLION) * ppm + ceil(x % MILLION * ppm / MILLION)
end

local level, last, gap0, gap1 = full, now, 0, 0
local nodes, changed, gone = {}, {}, {}
local raw = redis.call('HGETALL', KEYS[1])
for i = 1, #raw, 2 do
  local v = {}
  for x in string.gmatch(raw[i + 1], '[^:]+') do v[#v + 1] = tonumber(x) end
  if raw[i] == 'b' then
    level, last, gap0, gap1 = v[1], v[2], v[3], v[4]
  else
    nodes[raw[i]] = { hold = v[1], exp = v[2], demand = v[3], share = v[4], seen = v[5],
      heard = v[6], out = v[7], seq = v[8], ack = v[9], told = v[10], past = v[11] }
  end
end

-- The clock was set back: as if no time had passed, so all that was noted moves with it.
local back = last - now
if back > 0 then
  last, gap0, gap1 = now, gap0 - back, gap1 - back
  for name, n in pairs(nodes) do
    n.exp, n.seen, n.heard, changed[name] = n.exp - back, n.seen - back, n.heard - back, true
  end
end

-- Refill, less what those may mint who have not been heard of.
local passed = now - last
if passed > G and next(nodes) then gap0, gap1 = last, now end
local holds, withheld, out = 0, 0, 0
for name, n in pairs(nodes) do
  -- A lease that ended since then has kept its room until now: it could be spent meanwhile.
  if n.exp > last then holds = holds + n.hold else n.hold = 0 end
  local upto = min(now, n.seen + M)
  if not strict then
    -- Only who fell silent together with everybody: then it is the store that was away.
    upto = n.seen <= gap0 and min(upto, gap1 + grace) or last
  end
  local w = upto - max(last, n.heard + G)
  if w > 0 and n.share > 0 then
    local x = part(num * w, n.share)
    withheld, n.out, changed[name] = withheld + x, n.out + x, true
  end
  if now >= n.seen + M and (n.share > 0 or n.demand > 0) then
    n.share, n.demand, changed[name] = 0, 0, true
  end
  if now >= n.seen + REMEMBERED * M and name ~= id then
    gone[#gone + 1], nodes[name], changed[name] = name, nil, nil
  end
  out = out + min(n.out, part(num * T, n.share))
end
-- Longer than all may mint and it takes to fill up makes no difference.
local refill = min(passed * num, M * num + 2 * full)
level = min(level + refill - withheld, full - holds * den - out)

local answer
if id == '-' then
  level = min(level + ret * den, full - holds * den - out)
  local there = max(0, floor(level / den))
  local g = floor(min(want, there) / unit) * unit
  level = level - g * den
  local live = 0
  for _, n in pairs(nodes) do if n.demand > 0 then live = live + 1 end end
  local wait = g < want and max(1, ceil((unit * den - level) / num)) * tick or 0
  answer = { g, 0, 0, live, there - g, 0, wait }
  -- Nothing taken, nothing to write, nothing to replicate.
  if g == 0 and ret == 0 and back <= 0 then return answer end
else
  local me = nodes[id]
  if me and seq <= me.seq then return { -1, 0, 0, 0, 0, me.seq, 0 } end
  if not me then
    me = { hold = 0, exp = 0, demand = 0, share = 0, seen = now - T, heard = now - T, out = 0,
      seq = 0, ack = 0, told = 0, past = 0 }
    nodes[id] = me
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

  local all, shares, live, lent = 0, 0, 0, 0
  for _, n in pairs(nodes) do
    all = all + n.demand
    if n.demand > 0 then live = live + 1 end
    if n ~= me then
      shares = shares + n.share
      if n.exp > now then lent = lent + n.hold end
    end
  end
  -- Its share goes down only when it says that it counts on less: the answer may get lost.
  local weight, share = 0, 0
  if me.demand > 0 then
    weight = floor(me.demand * MILLION / all)
    share = max(0, min(floor((weight + floor(MILLION / live)) / 2), MILLION - shares))
  end
  me.share = max(share, min(echo, me.share))

  -- A slice by demand, and all beyond what the others ask for until they come again. What is lent
  -- leaves room for what all may mint, or there would be nothing to keep that back from.
  local there = max(0, floor(level / den))
  local since = min(now - me.seen, 2 * T)
  local slice = part(there, min(MILLION, floor(2 * weight * since / T)))
  local surplus = there - ceil(part(num * T, MILLION - weight) / den)
  local room = floor((full - num * T) / den) - lent - kept
  local g = max(0, min(want, room, max(slice, surplus)))
  level = level - g * den
  me.hold, me.exp, me.seen, me.seq, me.ack, me.told = kept + g, now + E, now, seq, ack, minted
  changed[id] = true
  answer = { g, kept, share, live, there - g, before, 0 }
  if leaves then gone[#gone + 1], nodes[id], changed[id] = id, nil, nil end
end

local function text(...)
  return string.format(string.rep('%.0f:', select('#', ...)):sub(1, -2), ...)
end
local fields = { 'b', text(level, now, gap0, gap1) }
for name in pairs(changed) do
  local n = nodes[name]
  fields[#fields + 1] = name
  fields[#fields + 1] = text(n.hold, n.exp, n.demand, n.share, n.seen, n.heard, n.out, n.seq,
    n.ack, n.told, n.past)
end
redis.call('HSET', KEYS[1], unpack(fields))
if #gone > 0 then redis.call('HDEL', KEYS[1], unpack(gone)) end
-- Forgotten once it would be full again, even if others mint first.
local rest = ceil((full - level) / num) + (next(nodes) and REMEMBERED * M or 0)
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', floor(rest * tick / 1000) + 1000))
return answer
