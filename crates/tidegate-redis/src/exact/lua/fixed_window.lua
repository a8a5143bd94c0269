-- Fixed window. A step back of at most a window stays in the window that it had reached: or that
-- would begin twice. A longer one (another machine's clock) counts on in the clock's own window.
function make.f()
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
  return fixed
end
