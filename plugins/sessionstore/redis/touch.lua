-- KEYS[1] a session; ARGV[1] the last access and ARGV[2] the lifetime, both in milliseconds.
local value = redis.call('GET', KEYS[1])
if not value then
  return 0
end
local space = string.find(value, ' ', 1, true)
if tonumber(ARGV[1]) > tonumber(string.sub(value, 1, space - 1)) then
  redis.call('SET', KEYS[1], ARGV[1] .. string.sub(value, space), 'PX', ARGV[2])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
