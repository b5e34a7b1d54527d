//! What plan nodes of one shape have in common.
//!
//! `ExecutionPlan` asks each node how its inputs and its expressions are visited and replaced. For
//! one that has no input, and for one that hands on the rows of one, there is one answer.

/// `apply_expressions` of an `ExecutionPlan` that has none.
#[macro_export]
macro_rules! without_expressions {
    () => {
        fn apply_expressions(
            &self,
            _f: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> datafusion::common::Result<
                datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> datafusion::common::Result<datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}

/// The methods of an `ExecutionPlan` without inputs and expressions but for `execute` and what it
/// tells of itself; its `properties` are a field.
macro_rules! leaf_node {
    ($name:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn properties(&self) -> &std::sync::Arc<datafusion::physical_plan::PlanProperties> {
            &self.properties
        }

        fn children(
            &self,
        ) -> Vec<&std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            Vec::new()
        }

        $crate::without_expressions!();

        fn replace_children(
            self: std::sync::Arc<Self>,
            _children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
            _options: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> datafusion::common::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>
        {
            Ok(self)
        }

        fn with_new_children(
            self: std::sync::Arc<Self>,
            _children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
        ) -> datafusion::common::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>
        {
            Ok(self)
        }
    };
}
pub(crate) use leaf_node;

/// `with_new_children` of an `ExecutionPlan`: replaces them and knows nothing of their properties.
#[macro_export]
macro_rules! with_new_children {
    () => {
        fn with_new_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
        ) -> datafusion::common::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>
        {
            use datafusion::physical_plan::execution_plan::{
                ChildrenPropertiesMode, ReplaceChildrenOptions,
            };
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            self.replace_children(children, options)
        }
    };
}

/// The methods of an `ExecutionPlan` without expressions that hands on the rows of its field
/// `input`: its name, its input, and how it is replaced. The node's own method
/// `with_input(&self, input, &ReplaceChildrenOptions) -> Result<Self>` makes it anew.
#[macro_export]
macro_rules! pass_through_node {
    ($name:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn children(
            &self,
        ) -> Vec<&std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.input]
        }

        $crate::without_expressions!();

        fn replace_children(
            self: std::sync::Arc<Self>,
            mut children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
            options: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> datafusion::common::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>
        {
            let input = children.pop().ok_or_else(|| {
                datafusion::common::internal_datafusion_err!("{} has one input", $name)
            })?;
            Ok(std::sync::Arc::new(self.with_input(input, &options)?))
        }

        $crate::with_new_children!();
    };
}
