-- P: writes, so that a replica or a full memory shows; and draws a new epoch if the server process is another than the
-- one that the epoch was drawn in. A process that was restarted from a snapshot, or a replica that was promoted, may
-- lack the last marks of single use, so what was issued before is refused rather than perhaps accepted twice.
-- KEYS     the process for which the epoch holds
-- ARGV     none
-- returns  1, 0, 0, 0
operations.P = function(keys, args)
  local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  if redis.call('GET', KEYS[keys]) ~= run_id then
    shard_epoch = ARGV[2]
    redis.call('SET', KEYS[1], shard_epoch)
    redis.call('SET', KEYS[keys], run_id)
    answers[1] = tonumber(shard_epoch)
  else
    redis.call('SET', KEYS[keys], run_id)
  end
  answer(1, 0, 0, 0)
  return keys + 1, args
end
