import { lazy, Suspense, type ComponentProps } from "react";
import { untilLoaded } from "../ui/loading";
import { Skeleton } from "../ui/Surface";

const View = lazy(() => untilLoaded(() => import("./AppView")));

/** Shows a view of an app. The code for views is loaded with the first view. */
export const AppView = (props: ComponentProps<typeof View>) => (
  <Suspense fallback={<Skeleton lines={4} />}>
    <View {...props} />
  </Suspense>
);
