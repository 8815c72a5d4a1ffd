/** Server-sent events, from pieces of bytes that end anywhere. */

export interface ServerSentEvent {
  id: string;
  type: string;
  data: Record<string, unknown>;
}

export async function* eventsOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of pieces) {
    rest += decoder.decode(piece, { stream: true });
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const event = eventOf(rest.slice(0, end));
      rest = rest.slice(end + 2);
      if (event) yield event;
    }
  }
}

function eventOf(block: string): ServerSentEvent | undefined {
  let id = "";
  let type = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") id = value;
    else if (name === "event") type = value;
    else if (name === "data") data.push(value);
  }
  return data.length === 0 ? undefined : { id, type, data: JSON.parse(data.join("\n")) as Record<string, unknown> };
}
