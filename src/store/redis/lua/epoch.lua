-- Decides whether the shard's memory can be trusted (its epoch), and collects all answers. docs/reference/redis.md#the-epoch tells
-- what the epoch is for, and when it is replaced.
--
-- The head (clock.lua) has for this: `next_epoch`, for a replacement; `checked_at`, the time of the last check in the caller's last
-- reply, NONE over a new connection; `expected` and `expecting_epoch`, the time that the caller expects here by its own clock, and the
-- epoch of the reply by which it does; `seen`, the highest number of batches that the caller has seen.
--
-- A set clock lets records expire early. So the server's time is noted each second. If the note is over 30 s off, either the clock
-- was set, or no worker could check meanwhile. What the caller expects decides:
--
-- 1. It expects the server's time: no worker could check. The epoch stays.
-- 2. It expects another time: the clock was set, or the call is late because the server stood still. The call fails with OTHERTIME
--    and does not run. If the caller hears that within its deadline, the clock was set, and it calls again without a time.
-- 3. It expects no time (a new worker, or after 2): the epoch is replaced.
--
-- Each batch that spends a nonce or redeems a token increments the number of batches. If the stored number is lower than `seen`, an
-- older copy was put back. The epoch's name is stored beside the number, or a copy put back key by key would pass: its number comes
-- first and is noticed, so a new epoch and a higher number are written; then its epoch comes, and would look right beside that number.
--
-- KEYS[1]  `<epoch>`
-- KEYS[2]  `<process> <time of the note> <evicted keys>`; without the count if the server's policy is to evict none, and none was
-- KEYS[3]  `<number> <epoch>`
-- From time.lua: wall
-- From clock.lua: call, next_epoch, checked_at, expected, expecting_epoch, seen, WRAP, NONE, value_of, now

-- A check takes 5 to 10 us, which would double a small call, so it holds for CHECK_HOLDS: too short for two changes of role with
-- a copy of the data in between.
local CHECK_HOLDS = 2 -- milliseconds, as all times here
local STEP = 30000 -- a shorter step is harmless, since records are kept a minute longer than needed
local NOTED_EVERY = 1000
local EXPECTED_MAX = 3600000 -- at most half of WRAP

local epoch_text = value_of(1)
local counted, counted_epoch = string.match(value_of(3), '^(%d+) (%d+)$')
local batches = tonumber(counted) or 0
local is_older = batches < seen or (counted and counted_epoch ~= epoch_text)

local function write_batches(number)
  batches = number
  call('SET', KEYS[3], string.format('%.0f %s', number, epoch_text))
end

if epoch_text == '' or is_older or checked_at == NONE or (now - checked_at) % WRAP > CHECK_HOLDS then
  -- The second replication id changes with every promotion.
  local run = string.match(call('INFO', 'server'), 'run_id:(%w+)')
  if not run then return redis.error_reply('ERR this server tells no run_id, by which a restart would be seen') end
  local process = run .. (string.match(call('INFO', 'replication'), 'master_replid2:(%w+)') or '')
  local noted, noted_at, noted_evicted = string.match(value_of(2), '^(%w+) (%d+) ?(%d*)$')
  local since = noted_at and wall - tonumber(noted_at)
  local stepped = noted_at and ARGV[1] == '' and math.abs(since) > STEP -- a test's clock (time.lua) may leap
  if stepped and not is_older and expected ~= NONE and epoch_text ~= '' and noted == process then
    -- Times are modulo WRAP, so a caller can only confirm a note of the last hour.
    local can_confirm = expecting_epoch == tonumber(epoch_text) and since > 0 and since <= EXPECTED_MAX + STEP
    local is_off = (now - expected + STEP) % WRAP > 2 * STEP -- by more than STEP, either way
    if not can_confirm or is_off then
      return redis.error_reply('OTHERTIME the clock of Redis was set, or this call is late')
    end
    stepped = false
  end
  local is_due = noted ~= process or since < 0 or since >= NOTED_EVERY
  local may_evict = noted_evicted ~= ''
  local evicted = (is_due or may_evict) and string.match(call('INFO', 'stats'), 'evicted_keys:(%d+)') or '0'
  -- The counts are compared for equality, because CONFIG RESETSTAT sets them to 0, after which fewer may have been evicted.
  local has_evicted = evicted ~= '0' and evicted ~= noted_evicted
  if epoch_text == '' or is_older or noted ~= process or stepped or has_evicted then
    epoch_text = string.format('%.0f', next_epoch)
    call('SET', KEYS[1], epoch_text)
    write_batches(math.max(batches, seen) + 1)
    noted = nil
  end
  if is_due or not noted then
    local evicts_never = evicted == '0' and string.find(call('INFO', 'memory'), 'maxmemory_policy:noeviction', 1, true)
    call('SET', KEYS[2], string.format('%s %.0f', process, wall) .. (evicts_never and '' or ' ' .. evicted))
  end
  checked_at = now
end
local shard_epoch = tonumber(epoch_text)

local answers, answered = {}, 0
local has_used = false -- whether this batch has spent a nonce or redeemed a token

local function answer(status, first, second)
  answers[answered + 1] = status
  answers[answered + 2] = first
  answers[answered + 3] = second
  answered = answered + 3
end
