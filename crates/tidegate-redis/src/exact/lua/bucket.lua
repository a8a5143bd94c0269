-- Token bucket. A clock that stepped back goes on from where it is: no time has passed.
function make.t()
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
    s.used = max(0, s.used - times(permits, s.b))
    return not s.is_new
  end
  return bucket
end

-- Pays later: waits for what is owed, not for what it takes itself.
function make.p()
  local later = setmetatable({}, { __index = kind_of('t') })
  function later.ask(s, cost, patience)
    local capacity = s.most * s.b
    if s.most == 0 or cost > floor((capacity + s.y) / s.b) then return nil end
    local owed = ceil(max(0, s.used - capacity) / s.a)
    local too_far = ceil(max(0, s.used + cost * s.b - capacity - s.y) / s.a)
    local retry = max(owed - patience, too_far)
    if retry > 0 then return retry, 0 end
    return 0, owed
  end
  return later
end
