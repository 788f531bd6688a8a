-- P: tells the epoch and the number of batches.
-- KEYS     a key that never exists: while a Cluster moves the slot, calls with new keys do not run, so neither does the probe
-- ARGV     | 'P' | 'W' to write the epoch again, so that a replica or a full memory shows |
-- returns  1, 0, 0
operations[80] = function(keys, operation) -- 'P'
  if #operation > 1 then call('SET', KEYS[1], epoch_text) end
  answer(1, 0, 0)
  return keys + 1
end
