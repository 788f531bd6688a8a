-- What every operation uses: the list of answers, and the shard's epoch.
-- The epoch is a random number that holds while this server process lives (see probe-2.lua); what was issued under
-- another epoch is refused, since its marks of single use may be gone.
local operations = {} -- by the code of an operation's letter
local epoch_text = call('GET', KEYS[1])
if not epoch_text then
  epoch_text = ARGV[2]
  call('SET', KEYS[1], epoch_text)
end
local shard_epoch = tonumber(epoch_text)
local answers, answered = {}, 0

local function answer(status, first, second)
  answers[answered + 1] = status
  answers[answered + 2] = first
  answers[answered + 3] = second
  answered = answered + 3
end
