// Clients in several languages, which generators make from the OpenAPI documents.
import { assertEquals } from "@std/assert";
import { ServerProcess } from "../../process/process.ts";
import { HAS_ANIMALS } from "../../process/shipped.ts";
import { JSON_TYPE } from "../../support/client.ts";
import { EMPTY, FULL } from "../../support/specimens.ts";
import { stringifyJson } from "../../../src/web/schema.ts";
import { SERVING } from "../catalogue.ts";
import { documentAt, DOCUMENTS, OPERATOR_TOKEN } from "../documents.ts";
import { PLAN, serveLaterRelease } from "../later_release.ts";

/** A client: command lines that make and run it, in a folder with its program and both documents. */
interface Client {
  /**
   * The program here. It lists, creates and updates animals, is refused another one, lists specimens, then lists and
   * creates accounts as an operator.
   */
  readonly program: string;
  /** Commands and Debian packages that must be installed. */
  readonly needs: string;
  readonly install?: string;
  /** Makes code for a document, whose name is `{}`. */
  readonly generate: string;
  readonly run: string;
}

/** Long enough to download everything, in ms. */
const LIFETIME = 900_000;
const RUN_GO = "go mod init example && go mod tidy && go run .";
const VENV = "python3 -m venv .";

/** A client by openapi-generator, with its options. */
function generated(options: string, { needs, install = "", ...client }: Omit<Client, "generate">): Client {
  const download = "mvn -q -B dependency:copy -DoutputDirectory=. -Dmdep.stripVersion -Dartifact=";
  return {
    ...client,
    needs: `java, mvn, ${needs}`,
    install: `${download}org.openapitools:openapi-generator-cli:7.25.0\n${install}`,
    generate: "java -jar openapi-generator-cli.jar generate -i {}.json " +
      `--global-property apiTests=false,modelTests=false,apiDocs=false,modelDocs=false ${options}`,
  };
}

const CLIENTS: Readonly<Record<string, Client>> = {
  "Go by oapi-codegen": {
    program: "oapi_codegen.go",
    needs: "go 1.25",
    generate:
      "go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -generate types,client " +
      "-package {} -o {}/client.go {}.json",
    run: RUN_GO,
  },
  "Go by openapi-generator": generated("-g go -o {} -p packageName={},withGoMod=false", {
    program: "openapi_generator.go",
    needs: "go 1.23",
    run: RUN_GO,
  }),
  "Python by openapi-python-client": {
    program: "openapi_python_client.py",
    needs: "python3, python3-venv",
    install: `${VENV} && bin/pip install -q openapi-python-client==0.29.1`,
    generate: "bin/openapi-python-client generate --path {}.json --output-path {} --overwrite --meta none",
    run: "bin/python openapi_python_client.py",
  },
  "Python by openapi-generator": generated("-g python -o . -p packageName={}", {
    program: "openapi_generator.py",
    needs: "python3, python3-venv",
    install: VENV,
    run: "bin/pip install -q -r requirements.txt && bin/python openapi_generator.py",
  }),
  "Java by openapi-generator": generated(
    "-g java -o . -p invokerPackage={},apiPackage={}.api,modelPackage={}.model",
    {
      program: "Main.java",
      needs: "javac",
      run:
        "mv Main.java src/main/java && mvn -q -B compile dependency:build-classpath -Dmdep.outputFile=path >&2" +
        " && java -cp target/classes:$(cat path) Main",
    },
  ),
  "PHP by openapi-generator": generated("-g php -o {} -p invokerPackage={}", {
    program: "openapi_generator.php",
    needs: "php-cli, php-curl, php-mbstring, php-guzzlehttp-guzzle",
    run: "php openapi_generator.php",
  }),
  "Ruby by openapi-generator": generated("-g ruby -o {} -p gemName={}", {
    program: "openapi_generator.rb",
    needs: "ruby, ruby-typhoeus",
    run: "ruby openapi_generator.rb",
  }),
};

for (const [name, { program, needs, install = "", generate, run }] of Object.entries(CLIENTS)) {
  const test = HAS_ANIMALS ? Deno.test : Deno.test.ignore;
  test(`client in ${name} lists, creates and updates, and reads what a later release adds`, async () => {
    await using server = await ServerProcess.start({ KV_PATH: ":memory:", OPERATOR_TOKEN }, {
      lifetime: LIFETIME,
      runtime: SERVING,
    });
    for (const item of [FULL, EMPTY]) {
      const request = { key: OPERATOR_TOKEN, body: stringifyJson(item), headers: JSON_TYPE };
      assertEquals((await server.fetch("POST /operator/v1/specimens", request)).status, 201);
    }
    await using later = serveLaterRelease(server.origin);
    const env = { ORIGIN: `http://localhost:${later.addr.port}`, OPERATOR_TOKEN };
    const cwd = await Deno.makeTempDir({ prefix: "client_" });
    await Deno.copyFile(`${import.meta.dirname}/${program}`, `${cwd}/${program}`);
    for (const [name, path] of DOCUMENTS) {
      await Deno.mkdir(`${cwd}/${name}`);
      await Deno.writeTextFile(`${cwd}/${name}.json`, await documentAt(server.origin + path));
    }

    let output = "";
    for (const lines of [install, ...DOCUMENTS.map(([name]) => generate.replaceAll("{}", name)), run]) {
      const { success, ...streams } = await new Deno.Command("sh", { args: ["-ec", lines], cwd, env })
        .output();
      const [text = "", errors] = [streams.stdout, streams.stderr].map((bytes) =>
        new TextDecoder().decode(bytes)
      );
      if (!success) throw new Error(`In ${cwd}, with ${needs}, this failed: ${lines}\n${text}${errors}`);
      output = text;
    }

    assertEquals(output.split("\n"), [
      "Élan 4611686018427387904 sold",
      "invalid_request name",
      "Élan 4611686018427387904",
      "Élan null",
      ...[`Élan ${PLAN}`, `Élan ${PLAN}`, ""],
    ]);
    await Deno.remove(cwd, { recursive: true });
  });
}
