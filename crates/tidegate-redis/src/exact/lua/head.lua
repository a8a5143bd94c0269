-- Decides several limits of one slot in one atomic step: all are charged, or none.
--
-- KEYS[i]  the state of limit i
-- ARGV     what: 'check', 'peek' (writes nothing), 'back' (gives back) or 'forget'
--          number of groups
--          for each limit 7: kind, a, b, tick (us), most permits, used at first, y
--          for each group: requests n, cost of each, longest wait (us), forced (0 or 1)
--          to give back instead of groups, for each limit: permits, mark
-- answer   a mark for each limit; then for each group: granted, and for each limit the permits
--          that remain, and in us: retry (0: it would allow, -1: never), reset, delay
--
-- kind  a, b                          y                       a state is
-- t, p  b units are one permit, of    p (pays later): most    used units, when
--       which a come back each tick   debt in units
-- i     a permits come each b ticks   1: aligned              used permits, since
-- f     window, 1: from the first     offset of windows       start, count
-- s     window, -                     -                       index, count, the one before
-- l     window, parts (0: a log)      us of a's ticks         a list of 'us:running total'
--
-- Every number is an integer below 2^53, where doubles are exact. What may exceed 2^52 is cut to
-- it, which no limit reaches: limits are refused when they are made if their products could.
local MOST = 4503599627370496
-- A state that differs from a new key's when it is at rest is kept for a day.
local KEPT_MS = 86400000
-- And all others for so long after they are.
local GRACE_MS = 1000
-- What a log holds at most; from there on the last entry stands for those that come.
local MOST_ENTRIES = 65536
local floor, ceil, min, max, fmt = math.floor, math.ceil, math.min, math.max, string.format

local time = redis.call('TIME')
local us = tonumber(time[1]) * 1000000 + tonumber(time[2])

local function times(a, b) return min(a * b, MOST) end
local function text(number) return fmt('%.0f', number) end
local function split(joined)
  local parts = {}
  for part in string.gmatch(joined, '[^:]+') do parts[#parts + 1] = part end
  return parts
end

-- Each kind: fresh(s), roll(s, numbers of a state), used(s) as permits and units of another,
-- assume(s, permits), free(s), ask(s, cost, patience) -> retry (nil: never) and delay,
-- take(s, cost), reset(s), numbers(s), mark(s), back(s, permits, mark) -> whether it changed;
-- and load(s) and save(s), where its state is not one text. Most calls need one kind: only those
-- are made.
local make, made = {}, {}
local load_text, save_text
local function kind_of(name)
  local kind = made[name]
  if not kind then
    kind = make[name]()
    kind.load, kind.save = kind.load or load_text, kind.save or save_text
    made[name] = kind
  end
  return kind
end
