-- Sliding log, and sliding window of parts (admissions of one part share an entry). A list in order
-- of time, of 'us:running total'; the first entry has left the window, and is there for its total.
-- How long ago an entry was is seen with the numbers of now: other numbers find nothing to convert.
function make.l()
  local log = {}
  local function entry(s, index)
    local found = redis.call('LINDEX', s.key, index)
    local colon = string.find(found, ':', 1, true)
    return tonumber(string.sub(found, 1, colon - 1)), tonumber(string.sub(found, colon + 1))
  end
  local function part(s, at)
    if s.b == 0 then return at end
    local tick = floor(at / s.y)
    return floor(tick / s.a) * s.b + floor(tick % s.a * s.b / s.a)
  end
  local function leaves(s, at)
    if s.b == 0 then return at + s.a end
    local gone = part(s, at) + s.b + 1
    return (floor(gone / s.b) * s.a + ceil(gone % s.b * s.a / s.b)) * s.y
  end
  -- The first index from `low` to `high` at which `holds(time, total)`, or one more than that. It
  -- is near `low` in most cases, where lists are fast: strides double until it is passed.
  local function first_index(s, low, high, holds)
    local stride = 1
    while low <= high do
      local index = min(low + stride - 1, high)
      if holds(entry(s, index)) then
        high = index - 1
        break
      end
      low, stride = index + 1, stride * 2
    end
    while low <= high do
      local middle = floor((low + high) / 2)
      if holds(entry(s, middle)) then high = middle - 1 else low = middle + 1 end
    end
    return low
  end
  function log.load(s)
    s.at, s.length, s.gone, s.left, s.total = us, redis.call('LLEN', s.key), 0, 0, 0
    if s.length == 0 then return end
    s.last, s.total = entry(s, s.length - 1)
    -- A step back stays at the last entry: or more than a window holds would be in one.
    s.at = max(us, s.last)
    s.gone = first_index(s, 1, s.length - 1, function(at) return leaves(s, at) > s.at end) - 1
    local _
    _, s.left = entry(s, s.gone)
    if s.last - us > s.a * s.y then
      -- Longer than a window back (another machine's clock): all that counts was taken now.
      s.total, s.left, s.length, s.last, s.at, s.stepped = s.total - s.left, 0, 0, us, us, true
    end
  end
  function log.free(s) return max(0, s.most - (s.total - s.left)) end
  function log.ask(s, cost)
    if cost > s.most then return nil end
    -- So much has to have left.
    local gone = s.total + cost - s.most
    if gone <= s.left then return 0, 0 end
    local index = first_index(s, s.gone + 1, s.length - 1, function(_, total)
      return total >= gone
    end)
    -- What this call takes is not in the list yet.
    local at = s.at
    if index < s.length then at = entry(s, index) end
    return leaves(s, at) - us, 0
  end
  function log.forced(s, cost) return s.total + cost <= MOST / 2 end
  function log.take(s, cost) s.total, s.last_taken = s.total + cost, s.at end
  function log.reset(s)
    if s.total == s.left then return 0 end
    return leaves(s, s.last_taken or s.last) - us
  end
  function log.mark(s) return s.at end
  function log.save(s)
    local function new(total) return text(s.at) .. ':' .. text(total) end
    if s.gone >= s.length - 1 then
      -- Nothing in it counts any more: totals begin anew.
      redis.call('DEL', s.key)
      if s.total == s.left then return end
      redis.call('RPUSH', s.key, '0:0', new(s.total - s.left))
    else
      if s.gone > 0 then redis.call('LTRIM', s.key, s.gone, -1) end
      if part(s, s.last) == part(s, s.at) or s.length - s.gone > MOST_ENTRIES then
        redis.call('LSET', s.key, -1, new(s.total))
      else
        redis.call('RPUSH', s.key, new(s.total))
      end
    end
    redis.call('PEXPIRE', s.key, text(ceil(log.reset(s) / 1000) + GRACE_MS))
  end
  function log.back(s, permits, mark)
    if s.stepped then return false end
    mark = part(s, mark)
    local index = first_index(s, s.gone + 1, s.length - 1, function(at)
      return part(s, at) >= mark
    end)
    if index >= s.length then return false end
    local at, total = entry(s, index)
    if part(s, at) ~= mark then return false end
    local _, before = entry(s, index - 1)
    permits = min(permits, total - before)
    if permits <= 0 then return false end
    -- All that came after it is so much less, too.
    local later = redis.call('LRANGE', s.key, index, -1)
    redis.call('LTRIM', s.key, s.gone, index - 1)
    for i = 1, #later do
      local numbers = split(later[i])
      total = tonumber(numbers[2]) - permits
      if total > before then redis.call('RPUSH', s.key, numbers[1] .. ':' .. text(total)) end
    end
    if redis.call('LLEN', s.key) == 1 then redis.call('DEL', s.key) end
    -- Written here.
    return false
  end
  return log
end
