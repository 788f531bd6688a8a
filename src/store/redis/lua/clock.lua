-- What everything that follows measures time by; see domain/limits.ts.
-- ARGV[1]  '' for this server's clock, or a time in milliseconds (tests)
local WINDOW, WINDOW_TEXT = 60000, '60000' -- Redis turns a number into text by printf, each time
local WRAP, HALF_WRAP = 16777216, 8388608
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
