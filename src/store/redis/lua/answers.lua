-- Finds out whether the shard's memory can be trusted (its epoch), and collects the answers of all operations.
--
-- The epoch is a random number, which holds for one Redis process while that process is primary without a break. What was
-- issued under another epoch is refused, because used nonces or redemption records may be gone. A process restarted from
-- a snapshot, a promoted replica, and a primary that was a replica for a moment may each lack the last ones. A client
-- need not notice (a Cluster cuts no connection when roles change), so the call that trusts the process checks it. (A slot
-- that was moved lacks no record, but from here the move looks the same.)
--
-- Records also expire early when this server's clock is set ahead, because Redis measures lifetimes by that clock. So the
-- time of the last check is stored with the process. Workers check every second. More than 30 s between two checks mean that
-- the clock was set, unless workers could not check (cut off, or no write accepted). The call's expected time decides:
--   confirms      The caller has measured the same time itself, under this epoch: the epoch stays.
--   contradicts   The clock was set, or the call is late, because it waited while the server stood still. The call fails
--                 with LATE and does not run. A caller that gets LATE within its deadline, as no late call does, calls
--                 again without an expected time.
--   is missing    The epoch is replaced. A process that has just started sends no expected time; nobody checked for 30 s.
-- (A shorter step takes less from a record than the minute for which records are kept beyond their time.)

-- How long a check holds: its 5 to 10 us would double a small call. Two changes of role with a copy of the data in between
-- take longer than this: a copy alone takes a fork and several round trips.
local LOOK_HOLDS = 2 -- milliseconds, as all times here
local STEP = 30000
local NOTED_EVERY = 1000
local VOUCHED_MAX = 3600000 -- at most half of WRAP, because `now` and `expected` are modulo WRAP

local epoch_text = call('GET', KEYS[1])
local looked_at = tonumber(ARGV[3])
if not epoch_text or not looked_at or (now - looked_at) % WRAP > LOOK_HOLDS then
  -- The process, and where its data came from: the second replication id changes with every promotion.
  local run = string.match(call('INFO', 'server'), 'run_id:(%w+)')
  if not run then return redis.error_reply('ERR this server tells no run_id, by which a restart would be seen') end
  local process = run .. (string.match(call('INFO', 'replication'), 'master_replid2:(%w+)') or '')
  local noted, noted_at = string.match(call('GET', KEYS[2]) or '', '^(%w+) (%d+)$')
  local since = noted_at and wall - tonumber(noted_at)
  local stepped = noted_at and ARGV[1] == '' and math.abs(since) > STEP
  local expected, expecting_epoch = string.match(ARGV[4], '^(%d+) (%d+)$')
  if stepped and expected and epoch_text and noted == process then
    local vouched = expecting_epoch == epoch_text and since > 0 and since <= VOUCHED_MAX + STEP
      and (now - tonumber(expected) + STEP) % WRAP <= 2 * STEP
    if not vouched then return redis.error_reply('LATE this call is, or the clock of Redis was set') end
    stepped = false
  end
  if not epoch_text or noted ~= process or stepped then
    epoch_text = ARGV[2]
    call('SET', KEYS[1], epoch_text)
    noted = nil
  end
  if not noted or since < 0 or since >= NOTED_EVERY then
    call('SET', KEYS[2], string.format('%s %.0f', process, wall))
  end
  looked_at = now
end
local shard_epoch = tonumber(epoch_text)

local operations = {} -- by the code of an operation's letter
local answers, answered = {}, 0

local function answer(status, first, second)
  answers[answered + 1] = status
  answers[answered + 2] = first
  answers[answered + 3] = second
  answered = answered + 3
end
