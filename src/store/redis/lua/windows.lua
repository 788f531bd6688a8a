-- Sliding windows over records of bytes: the mirror of domain/limits.ts, where the forms are described.
--
-- ARGV[1]  '' for this server's clock, or a time in milliseconds (tests)
-- ARGV[2]  an epoch for this shard, used if it has none

local WINDOW = 60000
local WRAP = 16777216
local HALF_WRAP = 8388608
local EXACT_LIMIT = 256
local COUNT_MAX = 65535

local function clock()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local now = clock() % WRAP

-- A clock that stepped back is held at the last entry.
local function held_time(last)
  if (now - last) % WRAP > HALF_WRAP then return last end
  return now
end

local function slot_of(limit)
  if limit <= EXACT_LIMIT then return 1 end
  return math.ceil(WINDOW / EXACT_LIMIT)
end

local function shares_slot(entry_time, time, slot)
  return math.floor(entry_time / slot) == math.floor(time / slot)
end

-- Address log: | time 3 | kind 1 | site tag 3 | count 2 | per entry.
local LOG_ENTRY = 9
local LOG_CHUNK = 100

-- All entries as one flat list of time, kind, tag, count. One unpack call per 100 entries, not per entry.
local function log_entries(record)
  local entries, size = {}, 0
  for at = 1, #record, LOG_ENTRY * LOG_CHUNK do
    local count = math.min(LOG_CHUNK, (#record - at + 1) / LOG_ENTRY)
    local values = { struct.unpack('>' .. string.rep('I3BI3I2', count), record, at) }
    if at == 1 then
      entries, size = values, count * 4
    else
      for index = 1, count * 4 do entries[size + index] = values[index] end
      size = size + count * 4
    end
  end
  return entries, size
end

local function log_wait(entries, size, time, challenge, tag, excess)
  for index = 1, size, 4 do
    local age = (time - entries[index]) % WRAP
    if age < WINDOW and (entries[index + 1] == 0) == challenge and (not tag or entries[index + 2] == tag) then
      excess = excess - entries[index + 3]
      if excess <= 0 then return WINDOW - age end
    end
  end
  return 0
end

-- Where in the record the entry starts whose four values start at `index`.
local function byte_of(index)
  return (index - 1) / 4 * LOG_ENTRY + 1
end

-- The entry of the same slot, kind and site. What joins it moves to the end, so that times stay in order.
local function joined_entry(entries, first, size, time, slot, kind, tag)
  for index = size - 3, first, -4 do
    if not shares_slot(entries[index], time, slot) then return nil end
    if entries[index + 1] == kind and entries[index + 2] == tag and entries[index + 3] < COUNT_MAX then return index end
  end
  return nil
end

-- Admits one request of `kind` (0 challenge, 1 verification, 2 failed verification) or refuses it without a trace.
-- Returns true, site count, failures; or false, milliseconds to wait, policy (1 address, 2 address and site).
local function admit_to_log(key, kind, tag, address_limit, site_limit)
  local record = redis.call('GET', key) or ''
  local entries, size = log_entries(record)
  local time = size > 0 and held_time(entries[size - 3]) or now
  local challenge = kind == 0
  local address_count, site_count, failures, first = 0, 0, 0, size + 1
  for index = 1, size, 4 do
    if (time - entries[index]) % WRAP < WINDOW then
      if index < first then first = index end
      local entry_kind, count = entries[index + 1], entries[index + 3]
      if entry_kind == 2 then failures = failures + count end
      if (entry_kind == 0) == challenge then
        address_count = address_count + count
        if entries[index + 2] == tag then site_count = site_count + count end
      end
    end
  end

  local address_excess = address_count - address_limit + 1
  local site_excess = site_limit > 0 and site_count - site_limit + 1 or 0
  if address_excess > 0 or site_excess > 0 then
    local address_wait = address_excess > 0 and log_wait(entries, size, time, challenge, nil, address_excess) or 0
    local site_wait = site_excess > 0 and log_wait(entries, size, time, challenge, tag, site_excess) or 0
    if site_wait > address_wait then return false, site_wait, 2 end
    return false, address_wait, 1
  end

  local slot = slot_of(site_limit > 0 and math.min(address_limit, site_limit) or address_limit)
  local keep_from, joined = byte_of(first), joined_entry(entries, first, size, time, slot, kind, tag)
  if joined then
    local entry = struct.pack('>I3BI3I2', time, kind, tag, entries[joined + 3] + 1)
    local rest = string.sub(record, keep_from, byte_of(joined) - 1) .. string.sub(record, byte_of(joined + 4))
    redis.call('SET', key, rest .. entry, 'PX', WINDOW)
  else
    local entry = struct.pack('>I3BI3I2', time, kind, tag, 1)
    redis.call('SET', key, string.sub(record, keep_from) .. entry, 'PX', WINDOW)
  end
  return true, site_count, failures
end

-- Plain window: | total 4 | then | time 3 | count 2 | per entry.
local WINDOW_HEADER = 4
local WINDOW_ENTRY = 5

-- The live part of a window, and how long one more request would have to wait (0: not at all). Writes nothing.
local function read_window(key, limit)
  local record = redis.call('GET', key) or ''
  local length = #record
  local window = { key = key, limit = limit, record = record, time = now, total = 0, first = WINDOW_HEADER + 1, wait = 0 }
  if length > 0 then
    window.time = held_time(struct.unpack('>I3', record, length - WINDOW_ENTRY + 1))
    window.total = struct.unpack('>I4', record)
    while window.first <= length do
      local entry_time, count = struct.unpack('>I3I2', record, window.first)
      if (window.time - entry_time) % WRAP < WINDOW then break end
      window.total = window.total - count
      window.first = window.first + WINDOW_ENTRY
    end
  end
  local excess = window.total - limit + 1
  local at = window.first
  while excess > 0 do
    local entry_time, count = struct.unpack('>I3I2', record, at)
    excess = excess - count
    if excess <= 0 then window.wait = WINDOW - (window.time - entry_time) % WRAP end
    at = at + WINDOW_ENTRY
  end
  return window
end

local function charge_window(window)
  local record, first, count = window.record, window.first, 1
  local keep_to = #record
  local last = keep_to - WINDOW_ENTRY + 1
  if last >= first then
    local last_time, last_count = struct.unpack('>I3I2', record, last)
    if shares_slot(last_time, window.time, slot_of(window.limit)) and last_count < COUNT_MAX then
      keep_to, count = last - 1, last_count + 1
    end
  end
  redis.call('SET', window.key, struct.pack('>I4', window.total + 1)
    .. string.sub(record, first, keep_to) .. struct.pack('>I3I2', window.time, count), 'PX', WINDOW)
end

-- Takes back one request that was charged at `time`.
local function refund_window(key, time)
  local record = redis.call('GET', key) or ''
  for at = #record - WINDOW_ENTRY + 1, WINDOW_HEADER + 1, -WINDOW_ENTRY do
    local entry_time, count = struct.unpack('>I3I2', record, at)
    if entry_time == time then
      local total = struct.unpack('>I4', record)
      local entry = count > 1 and struct.pack('>I3I2', entry_time, count - 1) or ''
      local rest = string.sub(record, WINDOW_HEADER + 1, at - 1) .. entry .. string.sub(record, at + WINDOW_ENTRY)
      if rest == '' then
        redis.call('DEL', key)
      else
        redis.call('SET', key, struct.pack('>I4', total - 1) .. rest, 'PX', WINDOW)
      end
      return
    end
  end
end
