-- The requests and used nonces of one address. Computes the same as domain/address-log.ts, which describes the record:
-- | time 3 | label 3 | count 2 | for requests, | until when it counts 3 | mark 5 | for a used nonce. A mark is 39 bits of the nonce's MAC.
-- From shared.lua: call, pack, unpack_bytes, WINDOW_MS, WRAP, HALF_WRAP, COUNT_MAX, ADDRESS, ADDRESS_SITE, written, value_of, now,
--   held_time, seconds_text, step_ms, shares_step
local ACCEPTED_MS, ACCEPTED_MINUTES = 300000, 5 -- domain/address-log.ts
local ENTRY = 8
-- A label is kind * KIND + site tag. Kinds are 0 challenge, 1 verification with a nonce to spend, 2 failed and 3 no proof, so labels stay below MARK.
local KIND = 2097152
local VERIFICATIONS, FAILURES, NO_PROOFS = KIND, 2 * KIND, 3 * KIND -- where each kind's labels start; below VERIFICATIONS are challenges
local MARK = 8388608 -- from here on, a label is the upper 3 bytes of a mark, and the count its lower 2
local CHUNK = 256 -- the entries of an address at both usual limits are one chunk: 20 us; several chunks take twice as long

-- Formats by number of entries, made once a batch.
local formats = {}
local function format_of(count)
  local format = formats[count]
  if not format then
    format = '>' .. string.rep('I3I3I2', count)
    formats[count] = format
  end
  return format
end

-- Returns a flat list of three numbers an entry (time, label, count) and its length. One unpack call per chunk.
local function log_entries(record)
  local size = #record / ENTRY * 3
  if #record <= ENTRY * CHUNK then return { unpack_bytes(format_of(#record / ENTRY), record) }, size end
  local entries = {}
  for at = 1, #record, ENTRY * CHUNK do
    local count = math.min(CHUNK, (#record - at + 1) / ENTRY)
    local chunk = { unpack_bytes(format_of(count), record, at) }
    local before = (at - 1) / ENTRY * 3
    for index = 1, count * 3 do entries[before + index] = chunk[index] end
  end
  return entries, size
end

-- Milliseconds until a used nonce expires; 0 if it has.
local function mark_rest(ends, time)
  local rest = (ends - time) % WRAP
  return rest < HALF_WRAP and rest or 0
end

local function is_live(entries, index, time)
  if entries[index + 1] >= MARK then return mark_rest(entries[index], time) > 0 end
  return (time - entries[index]) % WRAP < WINDOW_MS
end

-- Milliseconds until `excess` requests leave the window: challenges, or else those of /verify (kinds 1 to 3), at one site if `tag` is given.
local function log_wait(entries, size, time, is_challenge, tag, excess)
  for index = 1, size, 3 do
    local label = entries[index + 1]
    local age = (time - entries[index]) % WRAP
    if label < MARK and age < WINDOW_MS and (label < VERIFICATIONS) == is_challenge and (not tag or label % KIND == tag) then
      excess = excess - entries[index + 2]
      if excess <= 0 then return WINDOW_MS - age end
    end
  end
  return 0
end

-- Finds an entry of the same time step, kind and site. It moves to the end, so times stay in order.
local function joined_entry(entries, size, time, step, label)
  for index = size - 2, 1, -3 do
    if entries[index + 1] < MARK then
      if not shares_step(entries[index], time, step) then return nil end
      if entries[index + 1] == label and entries[index + 2] < COUNT_MAX then return index end
    end
  end
  return nil
end

-- The record without what has expired, and without the joined entry, which is written anew.
local function live_record(record, entries, size, time, joined)
  local live = {}
  for index = 1, size, 3 do
    if index ~= joined and is_live(entries, index, time) then
      local from = (index - 1) / 3 * ENTRY + 1
      live[#live + 1] = string.sub(record, from, from + ENTRY - 1)
    end
  end
  return table.concat(live)
end

-- Refusals of this batch, by key and label. A flood of one address at one site is refused at once: without this, each request takes
-- Redis 80 us if the record is long, instead of 6.
local refusals = {}

-- Admits one request of `kind`, or refuses it without a trace. An admitted request with a `keep` also records the nonce with this mark
-- as used, for `keep` ms. `keep` is 0 if no nonce is spent, or if the nonce has a key of its own, as above MARKS_LIMIT_MAX
-- (admit-solution-2.lua). For an unknown site, `tag` and `site_limit` are 0.
--
-- Returns true, site count, failures, whether the nonce was used before, accepted proofs of five minutes, all without this request; or
-- false, milliseconds to wait, policy (ADDRESS or ADDRESS_SITE).
local function admit_to_log(number, kind, tag, address_limit, site_limit, keep, mark_high, mark_low)
  local label = site_limit > 0 and kind * KIND + tag or kind * KIND
  local is_challenge = kind == 0
  local key, record = KEYS[number], value_of(number)
  -- A challenge that is an address's first request in a while, as most are, needs no look at entries, or limits, which are at least 1.
  if is_challenge and record == '' then
    written[key] = pack('>I3I3I2', now, label, 1)
    call('SET', key, written[key], 'EX', '60')
    return true, 0, 0, false, 0
  end
  local refusal = refusals[key .. label]
  if
    refusal and refusal.record == record and refusal.address_limit == address_limit and refusal.site_limit == site_limit
  then
    return false, refusal.wait, refusal.policy
  end
  local entries, size = log_entries(record)
  local time = size > 0 and held_time(entries[size - 2]) or now -- the last entry is always a request
  local address_count, site_count, failures, accepted_count, marks = 0, 0, 0, 0, 0
  local used, has_dead, record_keep = false, false, WINDOW_MS -- the record is kept until all its entries have expired
  for index = 1, size, 3 do
    local entry_label = entries[index + 1]
    if entry_label >= MARK then
      local rest = mark_rest(entries[index], time)
      if rest == 0 then
        has_dead = true
      else
        if rest > record_keep then record_keep = rest end
        marks = marks + 1
        if keep > 0 and entry_label == mark_high and entries[index + 2] == mark_low then used = true end
      end
    elseif (time - entries[index]) % WRAP < WINDOW_MS then
      local count = entries[index + 2]
      local of_site = entry_label % KIND == tag
      if of_site and entry_label >= FAILURES and entry_label < NO_PROOFS then failures = failures + count end
      if entry_label >= VERIFICATIONS and entry_label < FAILURES then accepted_count = accepted_count + count end
      if (entry_label < VERIFICATIONS) == is_challenge then -- /challenge and /verify are limited apart
        address_count = address_count + count
        if of_site then site_count = site_count + count end
      end
    else
      has_dead = true
    end
  end

  local address_excess = address_count - address_limit + 1
  local site_excess = site_limit > 0 and site_count - site_limit + 1 or 0
  if address_excess > 0 or site_excess > 0 then
    local address_wait = address_excess > 0 and log_wait(entries, size, time, is_challenge, nil, address_excess) or 0
    local site_wait = site_excess > 0 and log_wait(entries, size, time, is_challenge, tag, site_excess) or 0
    refusal = { record = record, wait = address_wait, policy = ADDRESS, address_limit = address_limit, site_limit = site_limit }
    if site_wait > address_wait then refusal.wait, refusal.policy = site_wait, ADDRESS_SITE end
    refusals[key .. label] = refusal
    return false, refusal.wait, refusal.policy
  end

  local step = step_ms(math.min(address_limit, site_limit > 0 and site_limit or address_limit)) -- the finer one of both
  local joined = joined_entry(entries, size, time, step, label)
  local count = joined and entries[joined + 2] + 1 or 1
  if has_dead or joined then record = live_record(record, entries, size, time, joined) end
  if keep > 0 and not used then
    local mark_keep = math.max(keep, ACCEPTED_MS) -- marks are counted as accepted proofs, too, for five minutes
    record_keep = math.max(record_keep, mark_keep)
    -- The mark comes first, because the last entry must be a request.
    record = record .. pack('>I3I3I2I3I3I2', (time + mark_keep) % WRAP, mark_high, mark_low, time, label, count)
  else
    record = record .. pack('>I3I3I2', time, label, count)
  end
  call('SET', key, record, 'EX', seconds_text(record_keep))
  written[key] = record
  -- Without marks, five minutes are estimated from one. A single proof stays one, or its address would count as a returning one.
  local accepted = marks > 0 and marks or accepted_count > 1 and accepted_count * ACCEPTED_MINUTES or accepted_count
  return true, site_count, failures, used, accepted
end
