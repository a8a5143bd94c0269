-- Two-window counter; steps back as above.
function make.s()
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
  return counter
end
