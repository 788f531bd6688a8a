-- R: charges a caller and an API key. If both admit the redemption, redeems the token, if there is one.
--
-- Anybody can send a token that was redeemed before, or is of a former epoch. If it were charged to the usual windows, one token
-- could use up a backend's limits. So it is charged to separate windows of the same size, called junk. A request that is junk already
-- when it is sent (a forged token) has no record, and its KEYS name windows of junk alone.
-- KEYS     caller window (if its limit is not 0) | API key window (likewise) | redemption record (if time to keep is not 0);
--          with such a record, a window of junk follows each window
-- ARGV     | 'R' | caller limit 3 | API key limit 3 | milliseconds to keep the record 4, or 0 | epoch in the token 4 | ...
--          ... Unix second until which the record must be kept by any correct clock 4 | claim |
--          A retry with the same claim succeeds, unless it is empty.
-- returns  1 redeemed (now, or before by the same claim), 2 used, 3 forgotten, 4 untouched (no token), then time of charge
--          (milliseconds modulo WRAP; 0 without a caller), 0  |  0, milliseconds to wait, policy (ADDRESS for the caller, or API_KEY;
--          with JUNK if the window that refused is one of junk)
-- From time.lua: wall
-- From shared.lua: call, unpack_bytes, ADDRESS, API_KEY, JUNK, values, written, operations, seconds_text, has_used, answer
-- From epoch.lua: shard_epoch
-- From windows.lua: window_of, wait_of, charge

local RECORD_KEPT_MS_MAX = 10860000 -- domain/token.ts
local REDEEMED, USED, FORGOTTEN, UNTOUCHED = 1, 2, 3, 4 -- TOKEN_OUTCOMES in store.ts

operations[82] = function(next_key, operation) -- 'R'
  local caller_limit, key_limit, keep, epoch, keep_until, claim_at = unpack_bytes('>I3I3I4I4I4', operation, 2)
  local keys_a_window = keep > 0 and 2 or 1
  local caller_at, key_at, record_at -- numbers of their keys
  if caller_limit > 0 then
    caller_at = next_key
    next_key = next_key + keys_a_window
  end
  if key_limit > 0 then
    key_at = next_key
    next_key = next_key + keys_a_window
  end
  if keep > 0 then
    record_at = next_key
    next_key = next_key + 1
  end

  local claim = string.sub(operation, claim_at)
  local before = record_at and (written[KEYS[record_at]] or values[record_at]) -- the claim of the first redemption
  local status = USED
  if not record_at then status = UNTOUCHED
  elseif epoch ~= shard_epoch then status = FORGOTTEN
  elseif not before or (claim ~= '' and before == claim) then status = REDEEMED end
  local junk = (status == USED or status == FORGOTTEN) and 1 or 0 -- a window's junk window is its next key
  local caller = caller_at and window_of(caller_at + junk)
  local api_key = key_at and window_of(key_at + junk)

  local caller_wait = caller and wait_of(caller, caller_limit) or 0
  local key_wait = api_key and wait_of(api_key, key_limit) or 0
  if caller_wait > 0 or key_wait > 0 then
    local refused_as_junk = junk * JUNK
    if key_wait > caller_wait then answer(0, key_wait, API_KEY + refused_as_junk)
    else answer(0, caller_wait, ADDRESS + refused_as_junk) end
    return next_key
  end
  if caller then charge(caller, caller_limit) end
  if api_key then charge(api_key, key_limit) end
  answer(status, caller and caller.time or 0, 0)

  if status == REDEEMED and not before then
    -- A host whose clock is ahead issues tokens that others accept later, maybe after `keep`, so the record is kept until then.
    -- RECORD_KEPT_MS_MAX bounds that, or records would pile up if this server's clock is behind.
    local rest = math.min(keep_until * 1000 - wall, RECORD_KEPT_MS_MAX)
    call('SET', KEYS[record_at], claim, 'EX', seconds_text(math.max(keep, rest)))
    written[KEYS[record_at]] = claim
    has_used = true -- batch.lua counts such batches, for the epoch
  end
  return next_key
end
