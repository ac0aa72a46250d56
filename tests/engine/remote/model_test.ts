import { testService } from "../../model/model.ts";
import { onServer } from "./server.ts";

testService("a server", onServer);
