-- How limits are defined: as the newest definition says of those that are held.
--
-- KEYS  1: how often definitions have changed; then each limit's definition, a text
--       "version:holder:words" in hexadecimal (16 digits each, words in a row)
-- ARGV  holder, how long a definition lasts from now on (ms); then for each limit 3: how, version,
--       words
--   how  hold: it is this unless a newer one is there. Of two of one version the one that sorts
--              first is (the stricter), but for who replaces its own
--        once: it is this unless there is any
-- Answer: how often definitions had changed; then for each limit: written (1), and its version and
--   words as it is now: how many numbers, then each in two halves of 32 bits
local holder, lasts = ARGV[1], tonumber(ARGV[2])
local changes = tonumber(redis.call('GET', KEYS[1]) or '0')
local answer, written = { changes }, 0

for i = 2, #KEYS do
  local at = 3 * i - 3
  local how, version, words = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local stored = redis.call('GET', KEYS[i])
  local is_mine = true
  local was_version, was_holder, was_words
  if stored then
    was_version, was_holder, was_words = string.match(stored, '^(%x+):(%x+):(%x+)$')
    if how == 'once' then
      is_mine = false
    elseif was_version ~= version then
      is_mine = version > was_version
    elseif was_words ~= words then
      is_mine = was_holder == holder or words < was_words
    end
  end
  local is_new = is_mine and (was_version ~= version or was_words ~= words)
  if is_new then written = written + 1 end
  if not is_mine then version, words = was_version, was_words end
  if is_mine or how == 'once' then
    -- What lasts longer by another's word goes on doing so.
    local ms = lasts
    if not is_new then ms = math.max(ms, redis.call('PTTL', KEYS[i])) end
    local by = is_mine and holder or was_holder
    local text = version .. ':' .. by .. ':' .. words
    redis.call('SET', KEYS[i], text, 'PX', string.format('%.0f', ms))
  end
  local all = version .. words
  answer[#answer + 1] = is_new and 1 or 0
  answer[#answer + 1] = #all / 16
  for digit = 1, #all, 8 do
    answer[#answer + 1] = tonumber(string.sub(all, digit, digit + 7), 16)
  end
end
if written > 0 then
  redis.call('INCRBY', KEYS[1], written)
  redis.call('PEXPIRE', KEYS[1], 2592000000)
end
return answer
