-- P: does nothing, so that a call without requests brings the head of the reply: the epoch and the number of batches.
-- KEYS     a key that never exists: while a Cluster moves the slot it refuses calls with new keys, and the probe must find that out
-- ARGV     | 'P' | 'W' to write the epoch again: a read-only replica or a full memory refuses that |
-- returns  1, 0, 0
-- From clock.lua: call, operations, answer
-- From epoch.lua: epoch_text
operations[80] = function(keys, operation) -- 'P'
  if #operation > 1 then call('SET', KEYS[1], epoch_text) end
  answer(1, 0, 0)
  return keys + 1
end
