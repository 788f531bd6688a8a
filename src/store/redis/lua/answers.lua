-- What every operation uses: the shard's epoch, and the list of answers.
-- The epoch is a random number that holds for one process while it is primary without a break; what was issued under
-- another epoch is refused, since its marks of single use may be gone. A process that was restarted from a snapshot, a
-- replica that was promoted, a primary that was a replica for a moment: each may lack the last marks. A client need not
-- notice (a Cluster cuts no connection when roles change), so the process is looked at here, in the call that trusts it.
-- (A slot that was moved lacks no mark, but from here that looks the same.)
-- Marks also end early where this server's clock is set ahead, since Redis counts their time by it. So beside the
-- process stands when somebody last looked: workers do every second, and more than half a minute between two looks is
-- such a step, unless whoever asks has measured that time itself, since it learned of this epoch: it was cut off, or no
-- write was taken. If it has measured another time, either the clock was set or this call is late: it waited here while
-- the server stood still. It is told so, and does not run. Only who was told at once, which no late call is, asks again
-- without a time of its own. So does who has none, having just begun: nobody else asked for so long, and what was issued
-- before is refused too. (What a shorter step takes from a mark is less than the minute that marks are kept beyond
-- their time.)

-- How long a look holds: 5 to 10 us would double a small call. No two changes of role with a copy of the data in
-- between are as fast as this: a copy alone takes a fork and several round trips.
local LOOK_HOLDS = 2 -- milliseconds, as all here
local STEP = 30000
local NOTED_EVERY = 1000
local VOUCHED_MAX = 3600000 -- and half of WRAP at most: `now` and `expected` are told modulo that

local epoch_text = call('GET', KEYS[1])
local looked_at = tonumber(ARGV[3])
if not epoch_text or not looked_at or (now - looked_at) % WRAP > LOOK_HOLDS then
  -- The process, and how it came by its data: the second replication id changes with every promotion.
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
