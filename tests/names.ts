// The names of the service in the guides.
import { slugOf } from "../src/app/service.ts";

/**
 * Changes the names in a text to those that follow from the service's title: names of folders, files, users and jobs,
 * such as `animal-store`, and names of metrics and alerts, such as `animal_store_` and `AnimalStoreBans`. `before` is
 * the current name of folders. The same words elsewhere stay.
 */
export function withName(text: string, before: string, title: string): string {
  const [name, metric] = [slugOf(title, "-"), slugOf(title, "_")];
  return text.replaceAll(placesOf(before), name)
    .replaceAll(metricsOf(before.replaceAll("-", "_")), `${metric}_`)
    .replaceAll(alertsOf(inCapitals(before)), inCapitals(name));
}

/** Matches a name of a folder, file, user or job. */
function placesOf(name: string): RegExp {
  const folders =
    `/(?:srv|run|var/backups|var/cache|etc/systemd/system|conf\\.d|cron\\.d)/|(?:Cache|Runtime)Directory=`;
  const users = `User=|--system |install -d -o |sudo -u |\\* \\* \\* |^upstream |enable --now `;
  const jobs = `- name: |job_name: |job="|a job named \``;
  return RegExp(
    `(?<=${folders}|${users}|${jobs})${name}(?!\\w)|(?<=http://)${name}(?=;)|(?<=/etc/)${name}(?=\\.env)|(?<![\\w-])${name}(?=-backup\\b)`,
    "gm",
  );
}

/** Matches a name at the beginning of a metric's name, or as the prefix of all of them. */
function metricsOf(name: string): RegExp {
  const units = "total|count|bucket|bytes|seconds|in_flight|waiting";
  return RegExp(
    `(?<=\`)${name}_(?=\`)|(?<![\\w\`])${name}_(?!start_time|resident)(?=[a-z_]*(?:${units})\\b)`,
    "gm",
  );
}

/** Matches a name at the beginning of an alert's name. */
function alertsOf(name: string): RegExp {
  return RegExp(`(?<=alert: |alertname="|^ +)${name}(?=[A-Z])`, "gm");
}

/** Returns, for example, `AnimalStore` for `animal-store`. */
function inCapitals(slug: string): string {
  return slug.replaceAll(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
}
