// The reference of the HTTP API, from its OpenAPI document.

import { get, useAnswer } from "./requests.js";
import { Problem, Waiting } from "./words.jsx";

const typeOf = (schema) => {
  if (!schema) return "";
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" or ");
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].filter((one) => one !== "null").join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items) || "values"}`;
  return schema.$ref ? schema.$ref.split("/").at(-1) : (schema.type ?? "");
};

/** Set what stands between backticks as code. */
const withCode = (text) => text.split("`").map((part, place) => (place % 2 ? <code key={place}>{part}</code> : part));

function fieldsOf(content, schemas) {
  const schema = content?.$ref ? schemas[content.$ref.split("/").at(-1)] : content;
  const required = new Set(schema?.required ?? []);
  return Object.entries(schema?.properties ?? {}).map(([name, one]) => ({
    name,
    schema: one,
    required: required.has(name),
    description: one.description,
  }));
}

export function ReferencePage() {
  const { data, error, retry } = useAnswer(["openapi"], (signal) => get("/openapi.json", {}, signal));
  if (error) return <Problem error={error} retry={retry} />;
  if (!data) return <Waiting text="Reading the description of the API" />;
  const calls = Object.entries(data.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, call]) => ({ path, method: method.toUpperCase(), call })),
  );
  const tags = [...new Set(calls.map(({ call }) => call.tags?.[0]))];
  return (
    <div class="reference">
      <h1 tabindex={-1}>The HTTP API</h1>
      <p class="quiet">
        {withCode(data.info.description)} Version {data.info.version}. <a href="/api/openapi.json">OpenAPI document</a>,{" "}
        <a href="/">explorer</a>
      </p>
      {tags.map((tag) => (
        <section key={tag} aria-labelledby={`tag-${tag}`}>
          <h2 id={`tag-${tag}`}>{tag}</h2>
          {calls
            .filter(({ call }) => call.tags?.[0] === tag)
            .map((one) => (
              <Call key={`${one.method} ${one.path}`} {...one} schemas={data.components?.schemas ?? {}} />
            ))}
        </section>
      ))}
    </div>
  );
}

function Call({ path, method, call, schemas }) {
  const body = call.requestBody?.content?.["application/json"]?.schema;
  const bodies = (body?.oneOf ?? (body ? [body] : [])).map((one) => ({
    name: one.$ref?.split("/").at(-1) ?? "body",
    fields: fieldsOf(one, schemas),
  }));
  const [, answer] = Object.entries(call.responses).find(([status]) => status.startsWith("2")) ?? [];
  const example = Object.values(answer?.content ?? {}).find((one) => one.example !== undefined)?.example;
  return (
    <details class="call">
      <summary>
        <code class={`method ${method.toLowerCase()}`}>{method}</code> <code>{path}</code>{" "}
        <span class="quiet">{withCode(call.description ?? call.summary)}</span>
      </summary>
      <Fields
        title="Parameters"
        fields={(call.parameters ?? []).filter((one) => one.in === "query").map((one) => ({ ...one }))}
      />
      {bodies.map((one) => (
        <Fields key={one.name} title={bodies.length > 1 ? `Body: ${one.name}` : "Body"} fields={one.fields} />
      ))}
      {example !== undefined && (
        <>
          <h3>Answer</h3>
          <pre tabindex={0}>{typeof example === "string" ? example : JSON.stringify(example, null, 1)}</pre>
        </>
      )}
    </details>
  );
}

function Fields({ title, fields }) {
  if (!fields.length) return null;
  return (
    <>
      <h3>{title}</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Type</th>
            <th scope="col">Meaning</th>
          </tr>
        </thead>
        <tbody>
          {fields.map((one) => (
            <tr key={one.name}>
              <td>
                <code>{one.name}</code>
                {one.required ? "" : <span class="quiet"> optional</span>}
              </td>
              <td>{typeOf(one.schema)}</td>
              <td>
                {withCode(one.description ?? "")}
                {one.schema?.default !== undefined && one.schema.default !== null
                  ? ` Default: ${JSON.stringify(one.schema.default)}.`
                  : ""}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
