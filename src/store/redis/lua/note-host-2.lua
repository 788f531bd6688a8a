-- Notes that a host lives or has ended, deletes the notes of hosts that no longer live, and returns the rest. Without an id it only
-- reads. Times are this server's, whatever the hosts' clocks show.
-- KEYS     hosts (hash: `<ms of the last note> <JSON>` by id) | number of shards
-- ARGV     time, see time.lua | id, '' to ask only | JSON, '' when the host ends | milliseconds that a host lives after a note
--          | number of shards to write, '' for none
-- returns  number of shards ('' if none was written), then of each host that lives `<ms of the last note> <JSON>`
-- From time.lua: wall
local id, json, lives_ms, shards = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
if shards ~= '' then redis.call('SET', KEYS[2], shards) end
if id ~= '' and json == '' then redis.call('HDEL', KEYS[1], id) end
if json ~= '' then redis.call('HSET', KEYS[1], id, string.format('%.0f %s', wall, json)) end
local reply = { redis.call('GET', KEYS[2]) or '' }
local notes = redis.call('HGETALL', KEYS[1])
for index = 1, #notes, 2 do
  local at = string.match(notes[index + 1], '^%d+')
  if math.abs(wall - tonumber(at)) <= lives_ms then
    reply[#reply + 1] = notes[index + 1]
  elseif id ~= '' then
    redis.call('HDEL', KEYS[1], notes[index])
  end
end
return reply
