-- wrk script: -- PATH BODY KEY...
-- Sends GET requests for the path, or POST requests if there is a body, with each key in turn. Finally prints a line:
-- responses, those with status 400 or more, requests without a response, requests per second.

local requests = {}

function init(args)
  if args[2] ~= "" then
    wrk.method, wrk.body = "POST", args[2]
    wrk.headers["Content-Type"] = "application/json"
  end
  for index = 3, #args do
    wrk.headers["Authorization"] = "Bearer " .. args[index]
    table.insert(requests, wrk.format(nil, args[1]))
  end
end

local turn = 0
function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function done(summary)
  local errors = summary.errors
  local missing = errors.connect + errors.read + errors.write + errors.timeout
  local perSecond = summary.requests * 1e6 / summary.duration
  io.write(string.format("%d %d %d %f\n", summary.requests, errors.status, missing, perSecond))
end
