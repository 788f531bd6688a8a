-- V: charges one verification to an address and, if asked to, marks its nonce as used.
-- KEYS     address log | used mark of the nonce (only if the time to keep it is not 0)
-- ARGV     kind (1, or 2 if it failed) | site tag | address limit | site limit | milliseconds to keep the mark, or 0 |
--          epoch under which the nonce was issued
-- returns  1 spent, 2 already used or of another epoch, 3 no nonce touched, then failures, 0, 0  |  0, milliseconds to wait, policy, 0
operations.V = function(keys, args)
  local admitted, first, second = admit_to_log(KEYS[keys], tonumber(ARGV[args]), tonumber(ARGV[args + 1]),
    tonumber(ARGV[args + 2]), tonumber(ARGV[args + 3]))
  local keep = ARGV[args + 4]
  local next_key = keep == '0' and keys + 1 or keys + 2
  if not admitted then
    answer(0, first, second, 0)
  elseif keep == '0' then
    answer(3, second, 0, 0)
  elseif ARGV[args + 5] == shard_epoch and redis.call('SET', KEYS[keys + 1], '', 'NX', 'PX', keep) then
    answer(1, second, 0, 0)
  else
    answer(2, second, 0, 0)
  end
  return next_key, args + 6
end
