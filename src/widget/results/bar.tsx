// A signed bar: from the zero line in the middle to the left for less, to the right for more.

export function SignedBar({ share }: { share: number }) {
  const width = `${Math.abs(share) * 50}%`;
  return (
    <div class="nnsl-bar" aria-hidden="true">
      {share !== 0 && (
        <i
          class={share < 0 ? "nnsl-bar-less" : "nnsl-bar-more"}
          style={share < 0 ? { right: "50%", width } : { left: "50%", width }}
        />
      )}
    </div>
  );
}
