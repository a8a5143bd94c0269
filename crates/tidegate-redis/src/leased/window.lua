-- A fixed window whose permits nodes take ahead of use, in one step.
--
-- KEYS[1]: a hash. Field `w`: name:ends:given. One field per node: window:taken:demand:seen:seq
--   name, ends   what nodes call the window: when it began, or a little more, so that no name comes
--                twice; and when it ends (us)
--   given        what was taken of it by all, those that are forgotten among them
--   taken        what the node had of `window`, and has not given back: spent, or still held
--   seen, seq    when its last call came, and which one it was
-- ARGV: 1 node  2 seq  3 window that it had permits of  4 taken of that  5 demand (permits/s)
--   6 want  7 leaves (1), or resets (2)  8 permits of a window  9 window (us)  10 T 11 M (us)
-- Answer: granted (-1: a later call was here before), window, taken of it, nodes, remaining, the
--   call before this one, us until the window ends
--
-- Held at all times: what nodes spend and hold of a window <= given, and given <= permits when
-- something is granted. All numbers are whole and below 2^53: doubles hold them.
local time = redis.call('TIME')
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local MILLION, REMEMBERED = 1000000, 10
local a = {}
for i = 2, 11 do a[i] = tonumber(ARGV[i]) end
local id, seq, window, demand, want = ARGV[1], a[2], a[3], a[5], a[6]
local leaves, resets, permits, length, T, M = a[7] == 1, a[7] == 2, a[8], a[9], a[10], a[11]
local now = tonumber(time[1]) * MILLION + tonumber(time[2])

local name, ends, given, nodes, changed, gone = 0, 0, 0, {}, {}, {}
local raw = redis.call('HGETALL', KEYS[1])
for i = 1, #raw, 2 do
  local v = {}
  for x in string.gmatch(raw[i + 1], '[^:]+') do v[#v + 1] = tonumber(x) end
  if raw[i] == 'w' then
    name, ends, given = v[1], v[2], v[3]
  else
    nodes[raw[i]] = { window = v[1], taken = v[2], demand = v[3], seen = v[4], seq = v[5] }
  end
end
local me = nodes[id] or { window = 0, taken = 0, demand = 0, seen = now, seq = 0 }
local before = me.seq
if seq <= before then return { -1, 0, 0, 0, 0, before, 0 } end

-- A step back of at most a window stays in the window that was reached, or that would begin twice.
-- After a longer one, or where windows were longer before, the count goes on in the clock's own.
local begins = now - now % length
if now >= ends then name, ends, given = max(begins, name + 1), begins + length, 0
elseif ends - now > 2 * length then ends = begins + length end

-- From a reset on it is another window, which ends as this one does: nobody has had any of it.
if resets then name, given = name + 1, 0 end

-- What a node says it has is all that it will have until it hears more from us: less than we
-- noted, if it gave some back or an answer got lost; more, if we have lost what we knew.
local had = me.window == name and me.taken or 0
local has = window == name and min(a[4], permits) or 0
given = given + has - had

local others, live = 0, demand > 0 and 1 or 0
for other, n in pairs(nodes) do
  if n.seen > now then n.seen, changed[other] = now, true end
  if other ~= id and now - n.seen >= REMEMBERED * M then
    gone[#gone + 1], changed[other] = other, nil
  elseif other ~= id and n.demand > 0 and now - n.seen < M then
    others, live = others + n.demand, live + 1
  end
end

-- A part of what is there by demand, and all beyond what the others ask for until they come again.
local there = max(0, permits - given)
local weight = demand > 0 and floor(demand * MILLION / (demand + others)) or 0
local slice = floor(there / MILLION) * weight + ceil(there % MILLION * weight / MILLION)
local surplus = there - ceil(min(others, 2 ^ 32) * T / MILLION)
local g = (leaves or resets) and 0 or max(0, min(want, max(slice, surplus)))
given = given + g

local function text(...)
  return string.format(string.rep('%.0f:', select('#', ...)):sub(1, -2), ...)
end
nodes[id] = { window = name, taken = has + g, demand = demand, seen = now, seq = seq }
if leaves or resets then gone[#gone + 1], changed[id] = id, nil else changed[id] = true end
local fields = { 'w', text(name, ends, given) }
for other in pairs(changed) do
  local n = nodes[other]
  fields[#fields + 1] = other
  fields[#fields + 1] = text(n.window, n.taken, n.demand, n.seen, n.seq)
end
redis.call('HSET', KEYS[1], unpack(fields))
if #gone > 0 then redis.call('HDEL', KEYS[1], unpack(gone)) end
-- Some time longer than the window: who asked for how much is of use in the next one.
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', floor((ends - now + M) / 1000) + 1000))
return { g, name, has + g, live, there - g, before, ends - now }
