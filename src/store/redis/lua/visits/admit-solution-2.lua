-- V: charges one verification to an address and records its nonce, if there is one, as used. The address log keeps the used
-- nonce. Above an address limit of 64 that log would get long, so the nonce has a key of its own.
-- KEYS     address log | used nonce (only above that limit, and if the time to keep the nonce is not 0)
-- ARGV     | 'V' | kind 1 (address-log.lua) | site tag 3 | address limit 3 | site limit 3 | ...
--          ... epoch under which the nonce is valid 4 | milliseconds to keep the used nonce 3; 0: none is sent | the nonce's mark 5 | ...
--          ... if a spent nonce counts as a proof, see add_proof in meters.lua: free proofs a minute of the site and of each
--          network 3 each | numbers of their meters 2 each |
-- returns  1 spent, 2 already used or of another epoch, 3 none was sent, then failures, accepted proofs
--          |  0, milliseconds to wait, policy
-- From shared.lua: call, unpack_bytes, operations, seconds_text, has_used, answer
-- From epoch.lua: shard_epoch
-- From address-log.lua: admit_to_log
-- From meters.lua: add_proof
local MARKS_LIMIT_MAX = 64 -- domain/address-log.ts

operations[86] = function(next_key, operation) -- 'V'
  local kind, tag, address_limit, site_limit, epoch, keep, mark_high, mark_low, rest =
    unpack_bytes('>BI3I3I3I4I3I3I2', operation, 2)
  local has_own_key = keep > 0 and address_limit > MARKS_LIMIT_MAX
  local is_of_epoch = epoch == shard_epoch
  local keep_in_log = is_of_epoch and not has_own_key and keep or 0
  -- An admitted request has the number of failures in `second`. Else `first` is the milliseconds to wait, `second` the policy.
  local admitted, first, second, used, accepted =
    admit_to_log(next_key, kind, tag, address_limit, site_limit, keep_in_log, mark_high, mark_low)
  if not admitted then
    answer(0, first, second)
  elseif keep == 0 then
    answer(3, second, accepted)
  elseif not is_of_epoch or used or (has_own_key and not call('SET', KEYS[next_key + 1], '', 'NX', 'EX', seconds_text(keep))) then
    answer(2, second, accepted)
  else
    answer(1, second, accepted)
    has_used = true -- batch.lua counts such batches, for the epoch
    add_proof(operation, rest, accepted, 1) -- adds nothing if no fields follow
  end
  return has_own_key and next_key + 2 or next_key + 1
end
