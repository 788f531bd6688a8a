-- Meters: two sums of accepted proofs that fade (domain/meters.ts):
-- | at, Unix ms 8 | recent 4 | usual 8 |
-- The first meter of a call is no meter but when the shard's first proof came, as `usual`; `at` is when that key was last renewed.
-- scripts.ts puts time.lua, clock.lua and the policy's numbers (TOLERATED, ...) before this.
local METER = '>dfd'

local BORN = METERS_FROM + 1
local meters = {} -- faded, by number
local renewed, _, born = 0, 0, wall
if meter_count > 0 and values[BORN] then renewed, _, born = unpack_bytes(METER, values[BORN]) end
local age = math.max(0, wall - born)
local gathered = math.max(MINUTE_MS, USUAL_MS * (1 - math.exp(-age / USUAL_MS))) -- milliseconds that `usual` stands for

local function meter_of(number, recent_ms)
  local meter = meters[number]
  if meter then return meter end
  meter = { recent = 0, usual = 0 }
  if values[METERS_FROM + number] then
    local at, recent, usual = unpack_bytes(METER, values[METERS_FROM + number])
    local elapsed = math.abs(wall - at)
    meter.recent, meter.usual = recent * math.exp(-elapsed / recent_ms), usual * math.exp(-elapsed / USUAL_MS)
  end
  meters[number] = meter
  return meter
end

-- Above `free` proofs a minute and so many times the usual rate, only a part is learned as usual.
local function add(number, proofs, recent_ms, free)
  local meter = meter_of(number, recent_ms)
  -- As before the proof, also to take it back: else a refused one at the budget would leave half of itself as usual.
  local recent = (meter.recent + math.min(0, proofs)) * MINUTE_MS / recent_ms
  local usual = meter.usual * MINUTE_MS / gathered
  local budget = math.max(free, TOLERATED * usual)
  local learned = proofs
  if age >= LEARNS_ALL_MS and recent > budget then learned = proofs * LEARNED_ABOVE * budget / recent end
  meter.recent = math.max(0, meter.recent + proofs)
  meter.usual = math.max(0, meter.usual + learned)
end

-- Adds an accepted proof, or -1 to take it back. `fields` has from byte `at` on, of the site and then of the networks: free
-- proofs a minute 3 each, then numbers of meters 2 each. `accepted` are earlier proofs of the address.
local function add_proof(fields, at, accepted, proofs)
  local count = (#fields - at + 1) / 5
  for index = 0, count - 1 do
    local free = unpack_bytes('>I3', fields, at + 3 * index)
    local number = unpack_bytes('>I2', fields, at + 3 * count + 2 * index)
    if index > 0 then add(number, proofs, NETWORK_RECENT_MS, free)
    elseif accepted >= RETURNING_PROOFS then add(number, proofs, SITE_RECENT_MS, free) end
  end
end

at_end.meters = function()
  for number, meter in pairs(meters) do
    local record = pack(METER, wall, meter.recent, meter.usual)
    values[METERS_FROM + number] = record
    local keep = math.min(KEPT_MS_MAX, KEPT_MS_A_PROOF * math.max(1, meter.usual))
    call('SET', KEYS[METERS_FROM + number], record, 'EX', seconds_text(keep))
  end
  if next(meters) and not shares_slot(renewed, wall, DAY_MS) then
    values[BORN] = pack(METER, wall, 0, born)
    call('SET', KEYS[BORN], values[BORN], 'EX', seconds_text(KEPT_MS_MAX))
  end
end
