-- P: writes, so that a replica or a full memory shows; and draws a new epoch if the data is not where it was when the
-- epoch was drawn. A process that was restarted from a snapshot, or a replica that was promoted, may lack the last marks
-- of single use, so what was issued before is refused rather than perhaps accepted twice. (A slot that was moved
-- lacks none, but from here that looks the same.)
-- KEYS     the process for which the epoch holds | a key that never exists: while a Cluster moves the slot elsewhere,
--          calls with new keys do not run, and so this one does not either
-- ARGV     | 'P' |
-- returns  1, 0, 0
operations[80] = function(keys)
  -- The process, and how it came by its data: the second replication id changes with every promotion.
  local process = (string.match(call('INFO', 'server'), 'run_id:(%w+)') or '')
    .. (string.match(call('INFO', 'replication'), 'master_replid2:(%w+)') or '')
  if call('GET', KEYS[keys]) ~= process then
    shard_epoch = tonumber(ARGV[2])
    call('SET', KEYS[1], ARGV[2])
  end
  call('SET', KEYS[keys], process)
  answer(1, 0, 0)
  return keys + 2
end
