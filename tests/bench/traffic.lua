-- wrk script: -- METHOD PATH ETAG BODIES KEY...
-- Sends requests with each key in turn: one for each line of the bodies, or without a body, and with If-None-Match if
-- there is an ETag. Finally prints a line: responses, those with status 400 or more, requests without a response,
-- requests per second.

local requests = {}

function init(args)
  wrk.method = args[1]
  if args[3] ~= "" then wrk.headers["If-None-Match"] = args[3] end
  if args[4] ~= "" then wrk.headers["Content-Type"] = "application/json" end
  for index = 5, #args do
    wrk.headers["Authorization"] = "Bearer " .. args[index]
    for body in string.gmatch(args[4] .. "\n", "(.-)\n") do
      if body ~= "" then wrk.body = body end
      table.insert(requests, wrk.format(nil, args[2]))
    end
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
