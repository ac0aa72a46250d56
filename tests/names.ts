// The names of the service in the guides.
import { slugOf } from "../src/app/service.ts";

/**
 * A text in which names of the service follow its title: those of folders, files, users and jobs, such as
 * `animal-store`, and those of metrics and alerts, such as `animal_store_` and `AnimalStoreBans`. `before` is what
 * folders are called so far. Other uses of the same words stay.
 */
export function withName(text: string, before: string, title: string): string {
  const [name, metric] = [slugOf(title, "-"), slugOf(title, "_")];
  return text.replaceAll(placesOf(before), name)
    .replaceAll(metricsOf(before.replaceAll("-", "_")), `${metric}_`)
    .replaceAll(alertsOf(inCapitals(before)), inCapitals(name));
}

/** Where a name is that of a folder, file, user or job. */
function placesOf(name: string): RegExp {
  const folders = `/(?:srv|var/backups|var/cache|etc/systemd/system|conf\\.d|cron\\.d)/|CacheDirectory=`;
  const users = `User=|--system |install -d -o |sudo -u |\\* \\* \\* |^upstream |enable --now `;
  const jobs = `- name: |job_name: |job="|scrape job |a job named \``;
  return RegExp(
    `(?<=${folders}|${users}|${jobs})${name}(?!\\w)|(?<=http://)${name}(?=;)|(?<=/etc/)${name}(?=\\.env)|(?<![\\w-])${name}(?=-backup\\b)`,
    "gm",
  );
}

/** Where a name begins those of metrics, or is the prefix of all of them. */
function metricsOf(name: string): RegExp {
  const units = "total|count|bucket|bytes|seconds|in_flight|waiting";
  return RegExp(
    `(?<=\`)${name}_(?=\`)|(?<![\\w\`])${name}_(?!start_time|resident)(?=[a-z_]*(?:${units})\\b)`,
    "gm",
  );
}

/** Where a name begins those of alerts. */
function alertsOf(name: string): RegExp {
  return RegExp(`(?<=alert: |alertname="|^ +)${name}(?=[A-Z])`, "gm");
}

/** Such as `AnimalStore` for `animal-store`. */
function inCapitals(slug: string): string {
  return slug.replaceAll(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
}
