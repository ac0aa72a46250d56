import { testService } from "./model.ts";

testService("a file");
