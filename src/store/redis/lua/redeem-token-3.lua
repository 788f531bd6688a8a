-- R: charges one redemption to a caller and to an API key, and, if both admit it and it is asked to, redeems the token.
-- KEYS     caller window (if its limit is not 0) | API key window (likewise) | redeemed mark (if time to keep is not 0)
-- ARGV     caller limit | API key limit | milliseconds to keep the mark, or 0 | epoch in the token | claim
-- returns  1 redeemed (now, or before by the same claim), 2 used, 3 forgotten, 4 no token touched, then time of charge, 0, 0
--          |  0, milliseconds to wait, policy (1 address, 3 API key), 0
operations.R = function(keys, args)
  local caller_limit, key_limit = tonumber(ARGV[args]), tonumber(ARGV[args + 1])
  local keep, epoch, claim = ARGV[args + 2], ARGV[args + 3], ARGV[args + 4]
  local caller, api_key, mark
  if caller_limit > 0 then
    caller = read_window(KEYS[keys], caller_limit)
    keys = keys + 1
  end
  if key_limit > 0 then
    api_key = read_window(KEYS[keys], key_limit)
    keys = keys + 1
  end
  if keep ~= '0' then
    mark = KEYS[keys]
    keys = keys + 1
  end

  local caller_wait, key_wait = caller and caller.wait or 0, api_key and api_key.wait or 0
  if caller_wait > 0 or key_wait > 0 then
    if key_wait > caller_wait then answer(0, key_wait, 3, 0) else answer(0, caller_wait, 1, 0) end
    return keys, args + 5
  end
  if caller then charge_window(caller) end
  if api_key then charge_window(api_key) end
  local charged_at = caller and caller.time or 0

  if not mark then
    answer(4, charged_at, 0, 0)
  elseif epoch ~= shard_epoch then
    answer(3, charged_at, 0, 0)
  elseif redis.call('SET', mark, claim, 'NX', 'PX', keep) then
    answer(1, charged_at, 0, 0)
  elseif claim ~= '' and redis.call('GET', mark) == claim then
    answer(1, charged_at, 0, 0)
  else
    answer(2, charged_at, 0, 0)
  end
  return keys, args + 5
end
