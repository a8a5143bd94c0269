-- Bucket that is refilled by whole periods.
function make.i()
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
    s.used = max(0, s.used - permits)
    return not s.is_new
  end
  return interval
end
