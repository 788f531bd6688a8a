-- P: writes, so that a replica or a full memory shows; and draws a new epoch if the server process is another than the
-- one that the epoch was drawn in. A process that was restarted from a snapshot, or a replica that was promoted, may
-- lack the last marks of single use, so what was issued before is refused rather than perhaps accepted twice.
-- KEYS     the process for which the epoch holds
-- ARGV     | 'P' |
-- returns  1, 0, 0
operations[80] = function(keys)
  local run_id = string.match(call('INFO', 'server'), 'run_id:(%w+)')
  if call('GET', KEYS[keys]) ~= run_id then
    shard_epoch = tonumber(ARGV[2])
    call('SET', KEYS[1], ARGV[2])
  end
  call('SET', KEYS[keys], run_id)
  answer(1, 0, 0)
  return keys + 1
end
