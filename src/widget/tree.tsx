// The module tree of the Lab.
import { useEffect, useState } from "preact/hooks";
import { type Lab, useLab } from "../common/lab";
import { ModuleTreeView } from "../common/moduletree";
import { type Tree, treeFrom } from "../common/treemodel";

function useTree(lab: Lab): { tree: Tree | null; error: string } {
  const { view } = useLab(lab);
  const [state, setState] = useState<{ tree: Tree | null; error: string }>({ tree: null, error: "" });
  const loaded = view?.model?.loaded;
  // A model whose weights were loaded may have other modules than before.
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked again when the model is loaded.
  useEffect(() => {
    let current = true;
    lab.connection.ask("modules", { kind: "modules" }).then(
      ({ reply, buffer }) => {
        if (!current || buffer === null) return;
        setState({ tree: treeFrom(reply, buffer), error: "" });
      },
      (error: Error) =>
        current && error.name !== "RequestDropped" && setState({ tree: null, error: error.message }),
    );
    return () => {
      current = false;
    };
  }, [lab, loaded]);
  return state;
}

export function ModuleTree({ lab }: { lab: Lab }) {
  const { view } = useLab(lab);
  const { tree, error } = useTree(lab);
  return (
    <ModuleTreeView
      tree={tree}
      error={error}
      waiting={lab.connection.state === "closed" ? view?.module || "No kernel" : "Reading the modules …"}
      current={view?.module ?? ""}
      modelKind={view?.model?.kind ?? ""}
      title="Modules"
      onChoose={(module) => void lab.act({ do: "show_module", module })}
    />
  );
}
