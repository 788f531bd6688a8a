-- The sliding windows of callers and of API keys. They count as domain/redemption-window.ts does, which describes the record:
-- | total 4 | time 3 | count 2 | time 3 | count 2 | ...
--
-- Each window is read and written once a batch, because most requests of a batch come from the same few callers and API keys. All
-- charges of one batch have the same time, hence share one entry.
-- From shared.lua: call, pack, unpack_bytes, WINDOW_MS, WRAP, COUNT_MAX, written, value_of, now, at_end, held_time, step_ms,
--   shares_step
local WINDOW_HEADER = 4
local WINDOW_ENTRY = 5
local windows = {}

-- Returns the window of a key by its number. `total` are the live requests, `added` those of them that this batch has charged, `first`
-- is the byte of the first live entry, and `time` is now, or the last entry's time if the clock was set back.
local function window_of(number)
  local key = KEYS[number]
  local window = windows[key]
  if window then return window end
  local record = value_of(number)
  local length = #record
  window = { key = key, record = record, time = now, total = 0, first = WINDOW_HEADER + 1, added = 0, step = 1 }
  if length > 0 then
    window.time = held_time(unpack_bytes('>I3', record, length - WINDOW_ENTRY + 1))
    window.total = unpack_bytes('>I4', record)
    while window.first <= length do
      local entry_time, count = unpack_bytes('>I3I2', record, window.first)
      if (window.time - entry_time) % WRAP < WINDOW_MS then break end
      window.total = window.total - count
      window.first = window.first + WINDOW_ENTRY
    end
  end
  windows[key] = window
  return window
end

-- Milliseconds until the window admits one more request; 0 if it does now.
local function wait_of(window, limit)
  local excess = window.total - limit + 1
  if excess <= 0 then return 0 end
  for at = window.first, #window.record, WINDOW_ENTRY do
    local entry_time, count = unpack_bytes('>I3I2', window.record, at)
    excess = excess - count
    if excess <= 0 then
      -- This batch's charges may join the last entry, which then expires with them.
      local joins = window.added > 0 and at + WINDOW_ENTRY > #window.record
        and shares_step(entry_time, window.time, window.step) and count + window.added <= COUNT_MAX
      return joins and WINDOW_MS or WINDOW_MS - (window.time - entry_time) % WRAP
    end
  end
  return WINDOW_MS -- this batch's charges expire last
end

local function charge(window, limit)
  window.total = window.total + 1
  window.added = window.added + 1
  window.step = step_ms(limit) -- all charges of a batch to one window have the same limit
end

local function write_window(window)
  if window.added == 0 then return end
  local record, first, count = window.record, window.first, window.added
  local keep_to = #record
  local last = keep_to - WINDOW_ENTRY + 1
  if last >= first then
    local last_time, last_count = unpack_bytes('>I3I2', record, last)
    if shares_step(last_time, window.time, window.step) and last_count + count <= COUNT_MAX then -- one entry counts both
      keep_to, count = last - 1, last_count + count
    end
  end
  call('SET', window.key, pack('>I4', window.total)
    .. string.sub(record, first, keep_to) .. pack('>I3I2', window.time, count), 'EX', '60')
end
at_end.windows = function() for _, window in pairs(windows) do write_window(window) end end

-- Removes a request that was charged at `time` from the stored window of a key. Its entry is found by the step of time, because an
-- entry has the time of its last request. If this batch has charged the window too, those charges are stored first.
local function refund(key, time, limit)
  if windows[key] then
    write_window(windows[key])
    windows[key] = nil
  end
  local record = call('GET', key) or ''
  written[key] = record
  local step = step_ms(limit)
  for at = #record - WINDOW_ENTRY + 1, WINDOW_HEADER + 1, -WINDOW_ENTRY do
    local entry_time, count = unpack_bytes('>I3I2', record, at)
    if shares_step(entry_time, time, step) then
      local total = unpack_bytes('>I4', record)
      local entry = count > 1 and pack('>I3I2', entry_time, count - 1) or ''
      local rest = string.sub(record, WINDOW_HEADER + 1, at - 1) .. entry .. string.sub(record, at + WINDOW_ENTRY)
      written[key] = rest == '' and '' or pack('>I4', total - 1) .. rest
      if rest == '' then call('DEL', key) else call('SET', key, written[key], 'EX', '60') end
      return
    end
  end
end
