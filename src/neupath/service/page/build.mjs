// Builds the page into bundle/: one script and one stylesheet, named by their content, and the licences of what is inside.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const SOURCES = /\.(jsx?|css|html|svg)$/;
const out = new URL("./bundle/", import.meta.url);
const here = new URL("./", import.meta.url);
rmSync(out, { recursive: true, force: true });
mkdirSync(out);

const { metafile } = await build({
  entryPoints: ["main.jsx", "style.css"],
  entryNames: "explorer-[hash]",
  outdir: "bundle",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  metafile: true,
  absWorkingDir: here.pathname.replace(/\/$/, ""),
});
const names = Object.keys(metafile.outputs).map((name) => name.replace("bundle/", ""));
const html = readFileSync(new URL("index.html", here), "utf8")
  .replace(
    "style.css",
    names.find((name) => name.endsWith(".css")),
  )
  .replace(
    "main.jsx",
    names.find((name) => name.endsWith(".js")),
  );
writeFileSync(new URL("index.html", out), html);
writeFileSync(new URL("icon.svg", out), readFileSync(new URL("icon.svg", here)));

const packages = [
  ...new Set(Object.keys(metafile.inputs).map((path) => path.match(/^node_modules\/((@[^/]+\/)?[^/]+)/)?.[1])),
];
const licences = packages
  .filter(Boolean)
  .sort()
  .map((name) => {
    const folder = new URL(`node_modules/${name}/`, here);
    const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
    const { version, license } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
    return `${name} ${version} (${license})\n\n${file ? readFileSync(new URL(file, folder), "utf8").trim() : ""}\n`;
  });
writeFileSync(new URL("LICENSES.txt", out), licences.join(`\n${"-".repeat(80)}\n\n`));

const hash = createHash("sha256");
for (const name of readdirSync(here)
  .filter((one) => SOURCES.test(one))
  .sort())
  hash.update(name).update(readFileSync(new URL(name, here)));
writeFileSync(new URL("sources.sha256", out), `${hash.digest("hex")}\n`);
