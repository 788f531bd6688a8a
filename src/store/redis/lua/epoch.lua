-- Decides whether the shard's memory can be trusted, and replaces its epoch if not. docs/reference/redis.md#the-epoch says what the
-- epoch is for. It is replaced when:
--
-- 1. There is none: the database is empty.
-- 2. Redis is another process, or was a replica meanwhile: the note (KEYS[2]) has another server id.
-- 3. Keys were evicted since the note.
-- 4. An older copy was put back: the number of batches that spent a nonce or redeemed a token is lower than `seen`. While a copy is
--    put back key by key, calls come in between, and would pass if KEYS[3] had the number alone. So the epoch stands beside it:
--    a. The copy's KEYS[3] comes. Its number is too low, so this writes a new epoch, and a number above `seen` beside it.
--    b. The copy's KEYS[1] comes. The number is now high enough, but stands beside another epoch, so this replaces the epoch again.
-- 5. The clock was set: set forward, it lets records expire early. The note has the server's time, renewed twice a second. If that is
--    over CLOCK_OFF_MAX from now (`is_note_off`), the clock was set, or no worker could call. The caller's time decides:
--    a. The caller expects about the server's time (`is_confirmed`): no worker could call. The epoch stays.
--    b. It expects another time: the clock was set, or the call is late because the server stood still. The call does nothing and
--       fails with OTHERTIME. If the call's deadline has passed, its caller has given it up; else the caller calls again (c).
--    c. It expects no time (after b, or a new worker): the epoch is replaced (`is_clock_set`).
-- 6. A move of the slot to another node of a Cluster was broken off: keys that had moved may be lost, the epoch not among them.
--    `checked_at` is then SLOT_MOVED:
--    a. The caller has met the move since its last reply, and the epoch is still that of this reply.
--    b. The caller is a new worker of a Cluster, and no call ran for UNWATCHED: workers that met a move may have ended before they told it.
--
-- The head (shared.lua) has for this: `next_epoch`, for a replacement; `checked_at`, the time of the last check in the caller's last
-- reply, NO_TIME over a new connection, or SLOT_MOVED; `expected`, the server's time by the caller's clock, and `expecting_epoch`, the epoch of the
-- reply from which the caller reckons it; `seen`, the highest number of batches that the caller has seen.
--
-- KEYS[1]  `<epoch>`
-- KEYS[2]  `<server id> <time of the note> <evicted keys>`; without the count if the server's policy is to evict none, and none was
-- KEYS[3]  `<number of batches> <epoch>`
-- From time.lua: wall
-- From shared.lua: call, next_epoch, checked_at, expected, expecting_epoch, seen, WRAP, NO_TIME, SLOT_MOVED, value_of, now

-- A check takes 5 to 10 us, which would double a small call, so its result holds for CHECK_HOLDS. In so short a time no server can become
-- a replica, copy another's data and be promoted again.
local CHECK_HOLDS = 2 -- milliseconds, as all times here
local CLOCK_OFF_MAX = 30000 -- less either way is harmless, since records are kept a minute longer than needed
local NOTED_EVERY = 500
local UNWATCHED = 1000 -- where a worker lives, the note is at most 750 old: it probes each 250
local EXPECTED_MAX = 3600000 -- a caller predicts the time for so long after a reply (client/call-head.ts); at most half of WRAP

local epoch_text = value_of(1)
local batches_text, batches_epoch = string.match(value_of(3), '^(%d+) (%d+)$')
local batches = tonumber(batches_text) or 0
local is_older_copy = batches < seen -- 4a
  or (batches_epoch ~= nil and batches_epoch ~= epoch_text) -- 4b

local function write_epoch() call('SET', KEYS[1], epoch_text) end
local function write_batches(number)
  batches = number
  call('SET', KEYS[3], string.format('%.0f %s', number, epoch_text))
end

if epoch_text == '' or is_older_copy or checked_at >= WRAP or (now - checked_at) % WRAP > CHECK_HOLDS then
  local run_id = string.match(call('INFO', 'server'), 'run_id:(%w+)')
  local promotion_id = string.match(call('INFO', 'replication'), 'master_replid2:(%w+)') -- changes with every promotion
  if not (run_id and promotion_id) then
    return redis.error_reply('ERR this server lacks run_id or master_replid2, which tell of restarts and promotions')
  end
  local server_id = run_id .. promotion_id
  local noted_id, noted_at, noted_evicted = string.match(value_of(2), '^(%w+) (%d+) ?(%d*)$')
  local note_age = noted_at and wall - tonumber(noted_at)
  local is_other_server = noted_id ~= server_id -- or there is no note
  local was_unwatched = expecting_epoch == 0 and note_age and note_age >= UNWATCHED -- 6b
  local has_moved = checked_at == SLOT_MOVED and (expecting_epoch == tonumber(epoch_text) or was_unwatched)
  -- 1, 2, 4, 6: the epoch is replaced whatever the clock says
  local is_lost = epoch_text == '' or is_other_server or is_older_copy or has_moved
  -- Only a test gives a clock of its own (time.lua), which may leap.
  local is_note_off = not is_lost and ARGV[1] == '' and math.abs(note_age) > CLOCK_OFF_MAX
  local is_clock_set = is_note_off and expected == NO_TIME -- 5c
  if is_note_off and not is_clock_set then
    -- 5a, by a forecast from this epoch. Times are modulo WRAP (4.6 h): if the clock was set by that, the note is too old or of the future.
    local is_confirmed = expecting_epoch == tonumber(epoch_text) and note_age > 0 and note_age <= EXPECTED_MAX + CLOCK_OFF_MAX
      and (now - expected + CLOCK_OFF_MAX) % WRAP <= 2 * CLOCK_OFF_MAX -- at most CLOCK_OFF_MAX, either way
    if not is_confirmed then return redis.error_reply('OTHERTIME the clock of Redis was set, or this call is late') end -- 5b
  end
  local is_note_due = is_other_server or note_age < 0 or note_age >= NOTED_EVERY
  local may_evict = noted_evicted ~= '' -- if not, only a new policy could evict: the count is read when a note is due, not each time
  local evicted = '0'
  if is_note_due or may_evict then evicted = string.match(call('INFO', 'stats'), 'evicted_keys:(%d+)') end
  if not evicted then return redis.error_reply('ERR this server lacks evicted_keys, which tells of evictions') end
  -- The counts are compared for equality, because CONFIG RESETSTAT sets them to 0, after which fewer may have been evicted.
  local has_evicted = evicted ~= '0' and evicted ~= noted_evicted
  local is_replaced = is_lost or has_evicted or is_clock_set -- 1 to 6
  if is_replaced then
    epoch_text = string.format('%.0f', next_epoch)
    write_epoch()
    write_batches(math.max(batches, seen) + 1)
  end
  if is_note_due or is_replaced then
    local evicts_never = evicted == '0' and string.find(call('INFO', 'memory'), 'maxmemory_policy:noeviction', 1, true)
    call('SET', KEYS[2], string.format('%s %.0f', server_id, wall) .. (evicts_never and '' or ' ' .. evicted))
  end
  checked_at = now
end
local shard_epoch = tonumber(epoch_text)
