-- R: charges a caller and an API key. If both admit the redemption, redeems the token, if there is one.
-- KEYS     caller window (if its limit is not 0) | API key window (likewise) | redemption record (if time to keep is not 0)
-- ARGV     | 'R' | caller limit 3 | API key limit 3 | milliseconds to keep the record 4, or 0 | epoch in the token 4 | ...
--          ... Unix second until which the record must be kept by any correct clock 4 | claim |
-- returns  1 redeemed (now, or before by the same claim), 2 used, 3 forgotten, 4 no token, then time of charge, 0
--          |  0, milliseconds to wait, policy (1 address, 3 API key)
-- Two hours that a host's clock may be ahead, the longest token lifetime, and the margin, in milliseconds.
local KEEP_MAX = 7200000 + 3600000 + 60000

operations[82] = function(keys, operation) -- 'R'
  local caller_limit, key_limit, keep, epoch, keep_until, claim_at = unpack_bytes('>I3I3I4I4I4', operation, 2)
  local caller, api_key, mark
  if caller_limit > 0 then
    caller = window_of(keys)
    keys = keys + 1
  end
  if key_limit > 0 then
    api_key = window_of(keys)
    keys = keys + 1
  end
  if keep > 0 then
    mark = KEYS[keys]
    keys = keys + 1
  end

  local caller_wait = caller and wait_of(caller, caller_limit) or 0
  local key_wait = api_key and wait_of(api_key, key_limit) or 0
  if caller_wait > 0 or key_wait > 0 then
    if key_wait > caller_wait then answer(0, key_wait, 3) else answer(0, caller_wait, 1) end
    return keys
  end
  if caller then charge(caller, caller_limit) end
  if api_key then charge(api_key, key_limit) end
  local charged_at = caller and caller.time or 0

  if not mark then
    answer(4, charged_at, 0)
  elseif epoch ~= shard_epoch then
    answer(3, charged_at, 0)
  else
    local claim = string.sub(operation, claim_at)
    -- A host whose clock is ahead issues tokens that others accept later, maybe after `keep`. (Bounded, so that records do not
    -- pile up if this server's clock is behind.)
    local rest = keep_until * 1000 - wall
    if rest > KEEP_MAX then rest = KEEP_MAX end
    if rest > keep then keep = rest end
    if call('SET', mark, claim, 'NX', 'EX', seconds_text(keep)) then
      answer(1, charged_at, 0)
      has_used = true
    elseif claim ~= '' and call('GET', mark) == claim then
      answer(1, charged_at, 0)
    else
      answer(2, charged_at, 0)
    end
  end
  return keys
end
