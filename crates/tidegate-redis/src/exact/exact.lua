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
-- take(s, cost), reset(s), numbers(s), mark(s), back(s, permits, mark) -> whether it changed.
local kinds = {}

-- Token bucket. A clock that stepped back goes on from where it is: no time has passed.
local bucket = {}
function bucket.fresh(s) s.used = times(s.first, s.b) end
function bucket.roll(s, used, last)
  local passed = s.now - last
  if passed < 0 then s.stepped, passed = true, 0 end
  if passed >= ceil(used / s.a) then s.used = 0 else s.used = used - passed * s.a end
end
function bucket.used(s) return floor(s.used / s.b), s.used % s.b, s.b end
function bucket.assume(s, whole, rest, of)
  if of ~= s.b and rest > 0 then rest = ceil(rest / of * s.b) end
  s.used = min(times(whole, s.b) + rest, MOST)
end
function bucket.free(s) return max(0, floor((s.most * s.b - s.used) / s.b)) end
function bucket.ask(s, cost, patience)
  if cost > s.most then return nil end
  local wait = max(0, ceil((s.used + cost * s.b - s.most * s.b) / s.a))
  -- What is reserved ahead has to fit into the state.
  patience = min(patience, floor(MOST / 2 / s.a))
  if wait <= patience then return 0, wait end
  return wait - patience, 0
end
function bucket.forced(s, cost) return cost <= floor((MOST - s.used) / s.b) end
function bucket.take(s, cost) s.used = s.used + cost * s.b end
function bucket.reset(s) return ceil(s.used / s.a) end
function bucket.numbers(s) return { s.used, s.now } end
function bucket.mark() return 0 end
function bucket.back(s, permits)
  if s.used == 0 then return false end
  s.used = max(0, s.used - times(permits, s.b))
  return true
end
kinds.t = bucket

-- Pays later: waits for what is owed, not for what it takes itself.
kinds.p = setmetatable({}, { __index = bucket })
function kinds.p.ask(s, cost, patience)
  local capacity = s.most * s.b
  if s.most == 0 or cost > floor((capacity + s.y) / s.b) then return nil end
  local owed = ceil(max(0, s.used - capacity) / s.a)
  local too_far = ceil(max(0, s.used + cost * s.b - capacity - s.y) / s.a)
  local retry = max(owed - patience, too_far)
  if retry > 0 then return retry, 0 end
  return 0, owed
end

-- Bucket that is refilled by whole periods.
local interval = {}
local function period_at(s) return s.y == 1 and s.now - s.now % s.b or s.now end
function interval.fresh(s) s.used, s.since = s.first, period_at(s) end
function interval.roll(s, used, since)
  -- Aligned, a small step back stays in the period that it had reached: or it would begin twice.
  if since > s.now and (s.y == 0 or since - s.now > s.b) then
    since, s.stepped = period_at(s), true
  end
  local periods = floor(max(0, s.now - since) / s.b)
  s.used = max(0, used - times(s.a, periods))
  if s.used == 0 then s.since = max(period_at(s), since) else s.since = since + periods * s.b end
end
function interval.used(s) return s.used, 0, 1 end
function interval.assume(s, whole, rest)
  s.used, s.since = whole + (rest > 0 and 1 or 0), period_at(s)
end
function interval.free(s) return max(0, s.most - s.used) end
local function back_in(s, permits)
  if permits <= 0 then return 0 end
  return max(0, s.since + times(ceil(permits / s.a), s.b) - s.now)
end
function interval.ask(s, cost, patience)
  if cost > s.most then return nil end
  local wait = back_in(s, s.used + cost - s.most)
  if wait <= patience and s.used + cost <= MOST / 2 then return 0, wait end
  return max(1, wait - patience), 0
end
function interval.forced(s, cost) return s.used + cost <= MOST / 2 end
function interval.take(s, cost) s.used = s.used + cost end
function interval.reset(s) return back_in(s, s.used) end
function interval.numbers(s) return { s.used, s.since } end
function interval.mark() return 0 end
function interval.back(s, permits)
  if s.used == 0 then return false end
  s.used = max(0, s.used - permits)
  return true
end
kinds.i = interval

-- Fixed window. A step back of at most a window stays in the window that it had reached: or that
-- would begin twice. A longer one (another machine's clock) counts on in the clock's own window.
local fixed = {}
local function window_at(s) return s.b == 1 and s.now or s.now - (s.now + s.y) % s.a end
function fixed.fresh(s) s.start, s.count = window_at(s), 0 end
function fixed.roll(s, start, count)
  if s.now >= start + s.a then return fixed.fresh(s) end
  if start - s.now > s.a then start, s.stepped = window_at(s), true end
  if s.b == 1 and count == 0 then start = s.now end
  s.start, s.count = start, count
end
function fixed.used(s) return s.count, 0, 1 end
function fixed.assume(s, whole, rest)
  s.start, s.count = window_at(s), whole + (rest > 0 and 1 or 0)
end
function fixed.free(s) return max(0, s.most - s.count) end
function fixed.ask(s, cost)
  if cost > s.most then return nil end
  if cost <= s.most - s.count then return 0, 0 end
  return s.start + s.a - s.now, 0
end
function fixed.forced(s, cost) return s.count + cost <= MOST / 2 end
function fixed.take(s, cost) s.count = s.count + cost end
function fixed.reset(s) return s.count == 0 and 0 or s.start + s.a - s.now end
function fixed.numbers(s) return { s.start, s.count } end
function fixed.mark(s) return s.start end
function fixed.back(s, permits, mark)
  if mark ~= s.start or s.count == 0 then return false end
  s.count = max(0, s.count - permits)
  return true
end
kinds.f = fixed

-- Two-window counter; steps back as above.
local counter = {}
function counter.fresh(s) s.index, s.count, s.before = floor(s.now / s.a), 0, 0 end
function counter.roll(s, index, count, before)
  local current = floor(s.now / s.a)
  if index > current + 1 then index, s.stepped = current, true end
  if current == index + 1 then
    index, count, before = current, 0, count
  elseif current > index then
    index, count, before = current, 0, 0
  end
  s.index, s.count, s.before = index, count, before
end
local function estimate(s)
  local left = min(s.a, max(0, (s.index + 1) * s.a - s.now))
  return s.count + ceil(times(s.before, left) / s.a)
end
function counter.used(s) return estimate(s), 0, 1 end
function counter.assume(s, whole, rest)
  counter.fresh(s)
  s.count = whole + (rest > 0 and 1 or 0)
end
function counter.free(s) return max(0, s.most - estimate(s)) end
-- When no more than `most` of a window before counts, in the window that begins at `start`.
local function falls_to(s, start, before, most)
  if before <= most then return start end
  return start + s.a - floor(most * s.a / before)
end
function counter.ask(s, cost)
  if cost > s.most then return nil end
  if cost <= counter.free(s) then return 0, 0 end
  local start, room = s.index * s.a, s.most - s.count - cost
  if room >= 0 then return falls_to(s, start, s.before, room) - s.now, 0 end
  return falls_to(s, start + s.a, s.count, s.most - cost) - s.now, 0
end
function counter.forced(s, cost) return s.count + cost <= MOST / 2 end
function counter.take(s, cost) s.count = s.count + cost end
function counter.reset(s)
  if s.count > 0 then return (s.index + 2) * s.a - s.now end
  return s.before > 0 and (s.index + 1) * s.a - s.now or 0
end
function counter.numbers(s) return { s.index, s.count, s.before } end
function counter.mark(s) return s.index end
function counter.back(s, permits, mark)
  if mark == s.index and s.count > 0 then
    s.count = max(0, s.count - permits)
  elseif mark == s.index - 1 and s.before > 0 then
    s.before = max(0, s.before - permits)
  else
    return false
  end
  return true
end
kinds.s = counter

-- One string: whose numbers it is in (kind, a, b, tick), and the numbers.
local function load_string(s)
  local kind, stored = kinds[s.kind], redis.call('GET', s.key)
  if not stored then
    s.is_new = true
    return kind.fresh(s)
  end
  local n = split(stored)
  if string.sub(stored, 1, #s.numbers_of) == s.numbers_of then
    return kind.roll(s, tonumber(n[5]), tonumber(n[6]), tonumber(n[7]))
  end
  -- Of other numbers: what was used by them stays used, and these hold at once.
  local old = { a = tonumber(n[2]), b = tonumber(n[3]), tick = tonumber(n[4]), most = 0, y = 0 }
  old.now = floor(us / old.tick)
  kinds[n[1]].roll(old, tonumber(n[5]), tonumber(n[6]), tonumber(n[7]))
  kind.assume(s, kinds[n[1]].used(old))
end
local function save_string(s)
  local reset = kinds[s.kind].reset(s)
  if reset == 0 and s.first == 0 then
    redis.call('DEL', s.key)
    return
  end
  local numbers = kinds[s.kind].numbers(s)
  for at = 1, #numbers do numbers[at] = text(numbers[at]) end
  local ms = ceil(reset * s.tick / 1000) + 1000
  if s.first > 0 then ms = ms + KEPT_MS end
  redis.call('SET', s.key, s.numbers_of .. table.concat(numbers, ':'), 'PX', text(ms))
end
for _, kind in pairs(kinds) do kind.load, kind.save = load_string, save_string end

local what, groups = ARGV[1], tonumber(ARGV[2])
if what == 'forget' then
  redis.call('DEL', unpack(KEYS))
  return {}
end
local states, at = {}, 3
for i = 1, #KEYS do
  local kind = ARGV[at]
  local s = {
    key = KEYS[i], kind = kind, numbers_of = table.concat(ARGV, ':', at, at + 3) .. ':',
    a = tonumber(ARGV[at + 1]), b = tonumber(ARGV[at + 2]), tick = tonumber(ARGV[at + 3]),
    most = tonumber(ARGV[at + 4]), first = tonumber(ARGV[at + 5]), y = tonumber(ARGV[at + 6]),
  }
  s.now = floor(us / s.tick)
  kinds[kind].load(s)
  states[i], at = s, at + 7
end

local answer = {}
if what == 'back' then
  for i = 1, #KEYS do
    local s, permits, mark = states[i], tonumber(ARGV[at]), tonumber(ARGV[at + 1])
    if kinds[s.kind].back(s, permits, mark) then kinds[s.kind].save(s) end
    at = at + 2
  end
  return answer
end
for i = 1, #KEYS do answer[i] = kinds[states[i].kind].mark(states[i]) end

for _ = 1, groups do
  local n, cost = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local patience, forced = tonumber(ARGV[at + 2]), ARGV[at + 3] == '1'
  at = at + 4
  local granted, delays = n, {}
  for i = 1, #KEYS do
    local s = states[i]
    local kind = kinds[s.kind]
    if cost == 0 then
      delays[i] = 0
    elseif forced then
      if not kind.forced(s, cost) then granted = 0 end
    elseif n == 1 then
      local retry, delay = kind.ask(s, cost, floor(patience / s.tick))
      if retry ~= 0 then granted = 0 end
      delays[i] = delay
    else
      granted = min(granted, floor(kind.free(s) / cost))
    end
  end
  answer[#answer + 1] = granted
  for i = 1, #KEYS do
    local s, retry = states[i], 0
    local kind = kinds[s.kind]
    if granted > 0 and cost > 0 then
      kind.take(s, granted * cost)
      s.is_taken = true
    end
    if granted < n and cost > 0 then
      if not forced then
        retry = kind.ask(s, cost, floor(patience / s.tick))
      elseif not kind.forced(s, cost) then
        retry = nil
      end
      if retry and retry > 0 then s.is_told = true end
    end
    answer[#answer + 1] = kind.free(s)
    answer[#answer + 1] = retry and retry * s.tick or -1
    answer[#answer + 1] = kind.reset(s) * s.tick
    answer[#answer + 1] = granted > 0 and (delays[i] or 0) * s.tick or 0
  end
end
if what == 'check' then
  for i = 1, #KEYS do
    local s = states[i]
    -- A denial writes nothing, but where time begins with it: a clock that stepped back, a new
    -- key that is not full.
    if s.is_taken or s.stepped or (s.is_new and s.is_told and s.first > 0) then
      kinds[s.kind].save(s)
    end
  end
end
return answer
